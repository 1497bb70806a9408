"""Servers that never answer hold up nobody but those who ask them (C44, TOOL-2, TOOL-8)."""

import asyncio
import sys
from pathlib import Path

import httpx
import pytest
from support.mcp_servers import SERVERS

from moorage.testing.process import GatewayProcess


@pytest.mark.req("TOOL-2", "TOOL-8", "API-4")
async def test_the_gateway_answers_while_servers_hang(tmp_path: Path) -> None:
    """Ten of the same kind at once; the deadline of each look is far below their own time limit."""
    hostile = str(SERVERS / "hostile.py")
    modes = ("silent", "wrong-id", "list-never")
    servers = {
        f"{mode}-{number}": {"command": sys.executable, "args": [hostile, mode], "session_init_timeout": 4}
        for mode in modes
        for number in range(3)
    }
    servers["fine"] = {"command": sys.executable, "args": [hostile]}
    with GatewayProcess(tmp_path / "home", config={"mcpServers": servers}) as gateway:
        async with httpx.AsyncClient(base_url=gateway.url, headers=gateway.headers, timeout=30) as http:
            tools = asyncio.create_task(http.get("/api/mcp/tools"))
            looks = 0
            while not tools.done():
                assert (await http.get("/healthz", timeout=2)).status_code == 200
                looks += 1
                await asyncio.wait({tools}, timeout=0.1)
            assert looks > 10
            assert {tool["server"] for tool in tools.result().json()["items"]} == {"fine"}
            states = (await http.get("/api/mcp/servers")).json()["items"]
    failed = [one for one in states if one["state"] == "failed"]
    assert len(failed) == 9
    assert all("within 4 seconds" in one["error"] and one["name"] in one["error"] for one in failed)
