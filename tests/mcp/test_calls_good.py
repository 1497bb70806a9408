"""A well-behaved server over every transport: list, call, state, shutdown."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.mcp_servers import context, gateway, http_server, remote, stdio

from moorage.contract import ServerConfig, ToolCaller


@pytest.fixture(params=["stdio", "http", "http-json-stateless", "sse"])
def server(request: pytest.FixtureRequest) -> Iterator[ServerConfig]:
    match request.param:
        case "stdio":
            yield stdio("good")
        case "http":
            with http_server("good", "--http") as url:
                yield remote("good", url)
        case "http-json-stateless":
            with http_server("good", "--http", "--stateless", "--json") as url:
                yield remote("good", url)
        case _:
            with http_server("good", "--sse") as url:
                yield remote("good", url, transport="sse")


@pytest.mark.req("TOOL-1", "TOOL-2", "TOOL-3", "TOOL-10")
async def test_lists_and_calls_tools(server: ServerConfig, tmp_path: Path) -> None:
    async with gateway(tmp_path, server) as made:
        tools = await made.tools()
        assert {"good_echo", "good_add", "good_picture"} <= tools.keys()
        assert tools["good_echo"].raw_name == "echo"
        assert tools["good_echo"].input_schema["required"] == ["text"]
        native: Any = tools["good_add"].native
        message = await native.ainvoke(
            {"type": "tool_call", "id": "c1", "name": "good_add", "args": {"a": 2, "b": 3}}
        )
        assert message.artifact == {"structured_content": {"sum": 5}}
        assert '"sum": 5' in message.content[0]["text"]
        (state,) = await made.catalogue.servers()
        assert (state.state, state.error) == ("ready", None)


@pytest.mark.req("TOOL-4", "ORD-6", "TASK-23")
async def test_caller_keeps_the_content_and_the_structured_part(server: ServerConfig, tmp_path: Path) -> None:
    async with gateway(tmp_path, server) as made:
        caller = made.context.service(ToolCaller)
        result = await caller.call("good", "add", {"a": 1, "b": 1}, context=context(), phase="status")
        assert result.structured == {"sum": 2}
        refused = await caller.call("good", "refuse", {}, context=context(), phase="call")
        assert refused.is_error
        assert refused.structured == {"why": "tired"}
        unknown = await caller.call("good", "no_such_tool", {}, context=context(), phase="call")
        assert unknown.is_error


@pytest.mark.req("TOOL-8", "STDIO-5")
async def test_a_call_that_takes_too_long_ends_and_the_session_lives(
    server: ServerConfig, tmp_path: Path
) -> None:
    async with gateway(tmp_path, server) as made:
        caller = made.context.service(ToolCaller)
        before = await caller.call("good", "about", {}, context=context(), phase="call")
        with pytest.raises(TimeoutError):
            await caller.call(
                "good", "wait", {"seconds": 30}, context=context(), phase="call", timeout_seconds=0.3
            )
        after = await caller.call("good", "about", {}, context=context(), phase="call")
        assert before.structured["pid"] == after.structured["pid"]


@pytest.mark.req("TOOL-4", "TOOL-5")
async def test_many_calls_at_once(server: ServerConfig, tmp_path: Path) -> None:
    async with gateway(tmp_path, server) as made:
        caller = made.context.service(ToolCaller)
        results = await asyncio.gather(
            *(
                caller.call("good", "add", {"a": n, "b": 0}, context=context(), phase="call")
                for n in range(20)
            )
        )
        assert [result.structured["sum"] for result in results] == list(range(20))
