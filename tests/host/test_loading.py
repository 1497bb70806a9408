"""Plugins that misbehave while they are loaded."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BAD = {
    "raises": "raise ImportError('no such engine')",
    "exits": "import sys; sys.exit(3)",
    "unknown_hook": (
        "from moorage.contract import hookimpl\n@hookimpl\ndef moorage_no_such_hook():\n    return ()\n"
    ),
    "wrong_signature": (
        "from moorage.contract import hookimpl\n@hookimpl\ndef moorage_stores(extra):\n    return ()\n"
    ),
}


def install(folder: Path, name: str, distribution: str, source: str) -> None:
    """A distribution with one plugin, as an installer leaves it."""
    (folder / f"bad_{name}_{distribution}.py").write_text(source)
    info = folder / f"{distribution}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[moorage.plugins]\n{name} = bad_{name}_{distribution}\n")


def listed(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", (f"import sys; sys.path.insert(0, {str(folder)!r}); "
         "from moorage.cli import main; main()"), "plugins", *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=60,
        check=False,
    )  # fmt: skip


@pytest.mark.req("PLUG-1", "PLUG-3", "PLUG-4")
def test_a_bad_plugin_is_reported_and_the_others_load(tmp_path: Path) -> None:
    for name, source in BAD.items():
        install(tmp_path, name, f"dist_{name}", source)
    install(tmp_path, "twin", "one", "")
    install(tmp_path, "twin", "two", "")
    done = listed(tmp_path, "--json")
    assert done.returncode == 0, done.stderr
    reports = {one["name"]: one for one in json.loads(done.stdout)}
    assert reports["raises"]["state"] == "failed"
    assert "no such engine" in reports["raises"]["error"]
    assert "SystemExit" in reports["exits"]["error"]
    assert "moorage_no_such_hook" in reports["unknown_hook"]["error"]
    assert "extra" in reports["wrong_signature"]["error"]
    assert reports["twin"]["state"] == "refused"
    assert "one 1.0" in reports["twin"]["error"]
    assert "two 1.0" in reports["twin"]["error"]
    assert reports["sql"]["state"] == reports["ordinary"]["state"] == "loaded"
