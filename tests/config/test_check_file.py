"""What ``moorage config check`` is told (CONF-7)."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.extensions import SECTIONS

from moorage.config import FILE_NAME, PATH_VARIABLE, check_file
from moorage.contract import ConfigSection


@dataclass
class Contribution:
    spec: ConfigSection


class Host:
    def sections(self) -> list[Contribution]:
        return [Contribution(section) for section in SECTIONS]


@pytest.mark.req("CONF-7", "PLUG-4")
def test_faults_name_line_and_column(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"mcpServers": {\n  "s": {"tpye": "http"},\n  "v": {"command": "x",\n    "vault": {}}}}')
    faults = check_file(path, Host(), env={}, missing_distribution={"vault": "moorage-vault"}.get)
    assert [(fault.server, fault.fatal, fault.where) for fault in faults] == [
        ("s", True, "mcpServers.s (line 2, column 3)"),
        ("s", False, "mcpServers.s.tpye (line 2, column 9)"),
        ("v", True, "mcpServers.v.vault (line 4, column 5)"),
    ]


@pytest.mark.req("CONF-7")
def test_a_healthy_file_and_no_file(tmp_path: Path) -> None:
    assert check_file(None, Host(), env={}, cwd=tmp_path) == []
    (tmp_path / FILE_NAME).write_text('\ufeff{"mcpServers": {"s": {"command": "x", "routing": {}}}}', "utf-8")
    assert check_file(None, Host(), env={}, cwd=tmp_path) == []


@pytest.mark.req("CONF-2", "CONF-7")
def test_what_cannot_be_read_is_a_fault(tmp_path: Path) -> None:
    (missing,) = check_file(tmp_path / "gone.json", Host(), env={})
    assert missing.fatal
    assert "does not exist" in missing.message
    (named,) = check_file(None, Host(), env={PATH_VARIABLE: str(tmp_path / "gone.json")}, cwd=tmp_path)
    assert "gone.json" in named.message
    (folder,) = check_file(tmp_path, Host(), env={})
    assert "cannot be read" in folder.message
    (tmp_path / "broken.json").write_text('{"a": \n x}')
    (broken,) = check_file(tmp_path / "broken.json", Host(), env={})
    assert broken.where == "line 2, column 2"


@pytest.mark.req("LAUNCH-1", "CONF-7")
def test_the_command_says_what_the_api_would_refuse(tmp_path: Path) -> None:
    servers = {
        "good": {"command": "npx", "args": ["-y", "srv-of-ours"]},
        "bad": {"command": "npx", "args": ["-c", "a-secret-command"]},
        "odd": {"command": 7},
    }
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"mcpServers": servers}, indent=1))

    def check(*options: str) -> tuple[int, dict[str, str]]:
        ran = subprocess.run(
            [sys.executable, "-m", "moorage", "config", "check", str(path), "--json", *options],
            env={"MOORAGE_HOME": str(tmp_path / "home"), "PATH": ""},
            capture_output=True,
            text=True,
            check=False,
        )
        assert "a-secret-command" not in ran.stdout + ran.stderr
        return ran.returncode, {one["server"]: one["message"] for one in json.loads(ran.stdout)["faults"]}

    assert check()[1].keys() == {"odd"}
    status, faults = check("--http")
    assert status == 1
    assert faults.keys() == {"bad", "odd"}
    assert "-c may run code" in faults["bad"]
