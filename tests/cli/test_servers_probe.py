"""``moorage servers probe`` on real servers (OPS-1, TOOL-2)."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.mcp_servers import SERVERS, http_server

SECRET = "planted-secret-value"


def probe(home: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "moorage", "servers", "probe", *options],
        cwd=home,
        env={"MOORAGE_HOME": str(home / "home"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.req("OPS-1", "TOOL-2", "TOOL-8", "CRED-9", "LAUNCH-1")
def test_each_server_is_reported_and_a_bad_one_costs_itself_only(tmp_path: Path) -> None:
    hostile = [str(SERVERS / "hostile.py")]
    with http_server("recorder") as url:
        servers: dict[str, Any] = {
            "far": {"url": f"{url}/mcp"},
            "near": {"command": sys.executable, "args": hostile},
            "dead": {
                "command": sys.executable,
                "args": [*hostile, "die-at-start"],
                "env": {"MCP_API_KEY": SECRET},
            },
            "slow": {"command": sys.executable, "args": [*hostile, "silent"], "session_init_timeout": 1},
            "off": {"url": "http://127.0.0.1:9/mcp", "enabled": False},
        }
        path = tmp_path / "extensions_config.json"
        path.write_text(json.dumps({"mcpServers": servers}))
        shown = probe(tmp_path, "--json")
        people = probe(tmp_path, "near", "far")
    assert shown.returncode == 1
    states = {one["name"]: one for one in json.loads(shown.stdout)}
    assert {name: one["state"] for name, one in states.items()} == {
        "far": "ready", "near": "ready", "dead": "failed", "slow": "failed", "off": "disabled",
    }  # fmt: skip
    assert states["near"]["tool_count"] > 10
    assert "status 3" in states["dead"]["error"]
    assert "within 1 seconds" in states["slow"]["error"]
    assert SECRET not in shown.stdout + shown.stderr
    assert people.returncode == 0
    assert "dead" not in people.stdout
    assert not (tmp_path / "home" / "moorage.db").exists()


@pytest.mark.req("OPS-1")
def test_wrong_names_and_files_are_told(tmp_path: Path) -> None:
    (tmp_path / "extensions_config.json").write_text('{"mcpServers": {"a": {"url": "http://127.0.0.1:9/"}}}')
    unknown = probe(tmp_path, "b")
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert "'b'" in unknown.stderr
    assert "a" in unknown.stderr
    missing = probe(tmp_path, "--config", "nothing.json")
    assert missing.returncode == 1
    assert "nothing.json" in missing.stderr
