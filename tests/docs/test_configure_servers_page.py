"""docs/how-to/configure-servers.md, executed from start to end."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from moorage.testing.process import GatewayProcess

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "configure-servers.md"


@pytest.mark.req("ADMIN-1", "ADMIN-2", "ADMIN-3", "ADMIN-6", "CONF-7")
def test_the_pages_commands_work_one_after_the_other(tmp_path: Path) -> None:
    commands = re.findall(r"^\$ (.*)$", PAGE.read_text(), re.MULTILINE)
    servers = {"files": {"command": "npx", "args": ["-y", "srv"], "env": {"API_KEY": "planted-literal"}}}
    servers["files"]["enabled"] = False  # type: ignore[assignment]
    with GatewayProcess(tmp_path / "home", config={"mcpServers": servers}) as gateway:
        program = tmp_path / "moorage"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m moorage "$@"\n')
        program.chmod(0o755)
        shell = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", "\n".join(commands)],
            cwd=gateway.home,
            env={"PATH": f"{tmp_path}:/usr/bin:/bin", "URL": gateway.url, "KEY": gateway.admin_key},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert shell.returncode == 0, shell.stdout + shell.stderr
    assert "planted-literal" not in shell.stdout
    answers = [json.loads(one) for one in re.findall(r"\{.*?\}(?=\{|$)", shell.stdout.splitlines()[-1])]
    assert [one["written"] for one in answers] == [False, True, False]
    assert [one["added"] for one in answers] == [["wiki"], ["wiki"], []]
    stored = json.loads(gateway.config_path.read_text())["mcpServers"]
    assert stored["files"]["env"] == {"API_KEY": "planted-literal"}
    assert stored["wiki"]["headers"] == {"Authorization": "Bearer ${WIKI_TOKEN}"}
