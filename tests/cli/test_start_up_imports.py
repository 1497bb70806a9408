"""What a command imports before it has something to do (PLUG-8)."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SLOW = ("litestar", "mcp", "pydantic", "sqlalchemy", "langchain_core", "langgraph", "typer", "httpx")


def imported_by(folder: Path, *arguments: str) -> set[str]:
    script = (
        "import json, sys\n"
        "from moorage.cli.front import run\n"
        f"status = run({list(arguments)!r})\n"
        "assert status == 0, status\n"
        "print(json.dumps(sorted(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=folder, timeout=60, check=True
    )
    return set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.req("PLUG-8")
@pytest.mark.parametrize("arguments", [["plugins"], ["plugins", "--json"], ["plugins", "hooks"]])
def test_listing_plugins_imports_nothing_slow(tmp_path: Path, arguments: list[str]) -> None:
    modules = imported_by(tmp_path, *arguments)
    assert not modules & set(SLOW)
    assert "--json" not in arguments or "rich" not in modules, "only a table needs it"
    assert "moorage_api.plugin" in modules, "the plugins themselves are loaded"


@pytest.mark.req("PLUG-8")
def test_help_imports_no_plugin_and_not_even_the_contract(tmp_path: Path) -> None:
    modules = imported_by(tmp_path, "--help")
    assert not modules & {*SLOW, "rich", "pluggy", "moorage.contract", "moorage_api", "moorage_drivers"}
