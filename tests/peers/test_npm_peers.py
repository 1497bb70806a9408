"""Public servers from npm: listed, called and closed (TOOL-1, TOOL-2, TOOL-10, STDIO)."""

import asyncio
import base64
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.mcp_servers import descendants, gateway, remote, until
from support.peers import NODE, Caller, Environments, peer

from moorage.contract import ServerConfig
from moorage_drivers.mcp.results import blocks_of

VERSION = "2026.8.31"
VIRTUAL = "/mnt/user-data/workspace"
PNG = b"\x89PNG"
pytestmark = pytest.mark.timeout(400)
"""A first installation may take long."""


@pytest.mark.req("TOOL-2", "STDIO-1", "STDIO-4")
async def test_server_filesystem(environments: Environments, tmp_path: Path) -> None:
    package = environments.npm("@modelcontextprotocol/server-filesystem", VERSION)
    server = peer("files", NODE, str(package / "dist/index.js"), ".")
    async with gateway(tmp_path, server) as made:
        tools = await made.tools()
        assert {"files_read_text_file", "files_write_file", "files_list_directory"} <= tools.keys()
        (state,) = await made.catalogue.servers()
        assert (state.state, state.error, state.warnings) == ("ready", None, ())
        files = Caller(made, "files")
        assert await files.text("write_file", path="a.txt", content="mine") == (
            f"Successfully wrote to {VIRTUAL}/a.txt"
        )
        assert await files.text("read_text_file", path="a.txt") == "mine"
        assert "a.txt" not in await files.text("list_directory", path=".", thread="t2")
        outside = await files.result("read_text_file", path=str(tmp_path / "moorage.db"))
        assert outside.is_error
        assert "outside allowed directories" in outside.content[0]["text"]
    (written,) = tmp_path.rglob("a.txt")
    assert written.is_relative_to(tmp_path / "users/alice/threads/t1/user-data/workspace")


async def everything(made: Caller) -> None:
    """What the reference server of all features answers, whichever the transport."""
    assert await made.text("echo", message="hello ⚓") == "Echo: hello ⚓"
    assert "is 3" in await made.text("get-sum", a=1, b=2)
    image = blocks_of(await made.result("get-tiny-image"))
    assert [block["type"] for block in image].count("image") == 1
    (shown,) = [block for block in image if block["type"] == "image"]
    assert base64.b64decode(shown["base64"]).startswith(PNG)
    structured = await made.result("get-structured-content", location="Chicago")
    assert {"temperature", "conditions", "humidity"} == structured.structured.keys()
    links = blocks_of(await made.result("get-resource-links", count=2))
    assert sum("demo://resource/dynamic" in block["text"] for block in links) == 2
    embedded = blocks_of(await made.result("get-resource-reference", resourceType="Blob", resourceId=1))
    assert [block["type"] for block in embedded] == ["text", "file", "text"]
    invalid = await made.result("get-sum", a="x")
    assert invalid.is_error
    assert "validation" in invalid.content[0]["text"]
    begun = time.monotonic()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await made.result("trigger-long-running-operation", duration=30, steps=3)
    assert await made.text("echo", message="still there") == "Echo: still there"
    assert time.monotonic() - begun < 10


@pytest.mark.req("TOOL-1", "TOOL-2", "TOOL-10", "STDIO-5")
async def test_server_everything_over_stdio(environments: Environments, tmp_path: Path) -> None:
    package = environments.npm("@modelcontextprotocol/server-everything", VERSION)
    server = peer("every", NODE, str(package / "dist/index.js"), "stdio", env={"MY_OWN": "1"})
    async with gateway(tmp_path, server) as made:
        assert "every_echo" in await made.tools()
        called = Caller(made, "every")
        await everything(called)
        environment = json.loads(await called.text("get-env"))
        assert environment["MY_OWN"] == "1"
        assert "PYTEST_CURRENT_TEST" not in environment


@contextmanager
def listening(package: Path, transport: str, path: str) -> Iterator[ServerConfig]:
    """The server over HTTP, on a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with subprocess.Popen(
        [NODE, str(package / "dist/index.js"), transport],
        env={**os.environ, "PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            deadline = time.monotonic() + 30
            while True:
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                assert time.monotonic() < deadline, "the server does not listen"
                assert process.poll() is None, "the server has ended"
                time.sleep(0.05)
            kind = "sse" if transport == "sse" else "http"
            yield remote("every", f"http://127.0.0.1:{port}{path}", transport=kind)
        finally:
            process.kill()


@pytest.mark.req("TOOL-1", "TOOL-5", "TOOL-10")
@pytest.mark.parametrize(("transport", "path"), [("streamableHttp", "/mcp"), ("sse", "/sse")])
async def test_server_everything_over_http(
    environments: Environments, tmp_path: Path, transport: str, path: str
) -> None:
    package = environments.npm("@modelcontextprotocol/server-everything", VERSION)
    with listening(package, transport, path) as server:
        async with gateway(tmp_path, server) as made:
            assert "every_echo" in await made.tools()
            await everything(Caller(made, "every"))


@pytest.mark.req("STDIO-3", "STDIO-5", "TOOL-4")
async def test_server_memory_through_npx(environments: Environments, tmp_path: Path) -> None:
    """As users configure it: the process that we start is not the server, and all of it has to go."""
    name = "@modelcontextprotocol/server-memory"
    variables = environments.npx(name, VERSION) | {"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")}
    server = peer("memory", "npx", "-y", f"{name}@{VERSION}", env=variables)
    before = descendants()
    async with gateway(tmp_path, server) as made:
        assert "memory_create_entities" in await made.tools()
        memory = Caller(made, "memory")
        ship = {"name": "Fram", "entityType": "ship", "observations": ["polar"]}
        await memory.result("create_entities", entities=[ship])
        graph = (await memory.result("read_graph")).structured
        assert [entity["name"] for entity in graph["entities"]] == ["Fram"]
        started = descendants() - before
        assert len(started) >= 2, "npx and the server itself"
        for pid in started:
            os.kill(pid, signal.SIGKILL)
        await until(lambda: not made.catalogue.sessions.pools.stdio.keys(), "the death was noticed")
        assert "polar" in await memory.text("open_nodes", names=["Fram"])
