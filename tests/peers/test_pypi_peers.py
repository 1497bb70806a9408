"""Public servers from PyPI, each in an environment of its own: listed, called and closed (TOOL, STDIO)."""

import asyncio
import json
import socket
import subprocess
import time
from pathlib import Path

import pytest
from support.mcp_servers import gateway, remote
from support.peers import Caller, Environments, peer

pytestmark = pytest.mark.timeout(400)
"""A first installation may take long."""
FASTMCP_SERVER = str(Path(__file__).parent / "fastmcp_server.py")


@pytest.mark.req("TOOL-2", "TOOL-10", "STDIO-5")
async def test_mcp_server_time_through_uvx(environments: Environments, tmp_path: Path) -> None:
    variables = environments.uvx("mcp-server-time", "2026.10.19")
    server = peer("time", "uvx", "mcp-server-time@2026.10.19", env=variables)
    async with gateway(tmp_path, server) as made:
        assert {"time_get_current_time", "time_convert_time"} == (await made.tools()).keys()
        clock = Caller(made, "time")
        converted = await clock.result(
            "convert_time", source_timezone="Europe/Oslo", time="12:00", target_timezone="Asia/Tokyo"
        )
        assert converted.structured["time_difference"] in ("+7.0h", "+8.0h")
        unknown = await clock.result("get_current_time", timezone="Mars/Olympus")
        assert unknown.is_error
        assert "Mars/Olympus" in unknown.content[0]["text"]


@pytest.mark.req("TOOL-2", "STDIO-1", "STDIO-4")
async def test_mcp_server_git(environments: Environments, tmp_path: Path) -> None:
    executables = environments.venv("git", "mcp-server-git==2026.10.19")
    async with gateway(tmp_path, peer("git", str(executables / "mcp-server-git"))) as made:
        assert {"git_git_status", "git_git_commit"} <= (await made.tools()).keys()
        git = Caller(made, "git")
        missing = await git.result("git_status", repo_path=".")
        assert missing.is_error, "there is no repository yet"
        (workspace,) = tmp_path.glob("users/alice/threads/t1/user-data/workspace")
        for arguments in (
            ["init", "-q", "-b", "main"],
            ["config", "user.name", "a"],
            ["config", "user.email", "a@b"],
        ):
            subprocess.run(["git", *arguments], cwd=workspace, check=True)
        (workspace / "log.txt").write_text("first\n")
        await git.text("git_add", repo_path=".", files=["log.txt"])
        assert "committed" in (await git.text("git_commit", repo_path=".", message="Weigh anchor")).lower()
        assert "Weigh anchor" in await git.text("git_log", repo_path=".")


@pytest.mark.req("TOOL-2", "TOOL-4")
async def test_mcp_server_sqlite(environments: Environments, tmp_path: Path) -> None:
    # This server does not start on the client library's second major version.
    executables = environments.venv("sqlite", "mcp-server-sqlite==2025.4.25", "mcp<2")
    server = peer("sqlite", str(executables / "mcp-server-sqlite"), "--db-path", "own.db")
    async with gateway(tmp_path, server) as made:
        assert {"sqlite_read_query", "sqlite_write_query"} <= (await made.tools()).keys()
        sql = Caller(made, "sqlite")
        await sql.text("create_table", query="CREATE TABLE ships (name TEXT)")
        await sql.text("write_query", query="INSERT INTO ships VALUES ('Fram')")
        assert "Fram" in await sql.text("read_query", query="SELECT * FROM ships")
        other = await sql.result("read_query", query="SELECT * FROM ships", thread="t2")
        assert "no such table" in other.content[0]["text"], "another thread has another database"


async def harbour(called: Caller) -> None:
    ship = await called.result("ship", name="Fram")
    assert ship.structured == {"name": "Fram", "tons": 400}
    sunk = await called.result("sink")
    assert sunk.is_error
    assert "the ship has sunk" in sunk.content[0]["text"]
    assert await called.text("slow", seconds=0.2) == "done"
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await called.result("slow", seconds=60)
    assert json.loads(await called.text("ship", name="Gjøa", tons=47)) == {"name": "Gjøa", "tons": 47}


@pytest.mark.req("TOOL-2", "TOOL-10", "STDIO-5", "TOOL-5")
async def test_a_fastmcp_server_over_both_transports(environments: Environments, tmp_path: Path) -> None:
    python = str(environments.venv("fastmcp", "fastmcp==4.2.3") / "python")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with subprocess.Popen(
        [python, FASTMCP_SERVER, "http", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            deadline = time.monotonic() + 30
            while True:
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                assert time.monotonic() < deadline, "the server does not listen"
                await asyncio.sleep(0.05)
            servers = [
                peer("local", python, FASTMCP_SERVER, "stdio"),
                remote("far", f"http://127.0.0.1:{port}/mcp"),
            ]
            async with gateway(tmp_path, *servers) as made:
                tools = (await made.tools()).keys()
                assert tools == {
                    f"{name}_{tool}" for name in ("local", "far") for tool in ("ship", "slow", "sink")
                }
                await harbour(Caller(made, "local"))
                await harbour(Caller(made, "far"))
        finally:
            process.kill()
