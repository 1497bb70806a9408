"""Tools called synchronously and from other event loops (TOOL-6)."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from support.mcp_servers import context, gateway, http_server, remote, stdio


def ask(native: Any) -> Any:
    return {"type": "tool_call", "id": "c", "name": native.name, "args": {}}


@pytest.fixture(params=["stdio", "http"])
def server(request: pytest.FixtureRequest) -> Any:
    if request.param == "stdio":
        yield stdio("s", "hostile")
    else:
        with http_server("hostile_http") as url:
            yield remote("s", url)


@pytest.mark.req("TOOL-6")
async def test_from_another_loop(server: Any, tmp_path: Path) -> None:
    async with gateway(tmp_path, server) as made:
        native: Any = (await made.tools())["s_ok"].native

        def elsewhere() -> Any:
            async def both() -> Any:
                listed = await made.catalogue.tools(context())
                return [tool.name for tool in listed], await native.ainvoke(ask(native))

            return asyncio.run(both())

        names, message = await asyncio.to_thread(elsewhere)
        assert "s_ok" in names
        assert message.content[0]["text"] == "ok"


@pytest.mark.req("TOOL-6")
async def test_synchronously_from_a_thread(server: Any, tmp_path: Path) -> None:
    async with gateway(tmp_path, server) as made:
        native: Any = (await made.tools())["s_ok"].native
        messages = await asyncio.gather(*(asyncio.to_thread(native.invoke, ask(native)) for _ in range(5)))
        assert [message.content[0]["text"] for message in messages] == ["ok"] * 5


@pytest.mark.req("TOOL-6")
async def test_synchronously_while_the_loop_itself_is_blocked(server: Any, tmp_path: Path) -> None:
    async with gateway(tmp_path, server) as made:
        native: Any = (await made.tools())["s_ok"].native
        assert native.invoke(ask(native)).content[0]["text"] == "ok"
        found: list[Any] = []
        worker = threading.Thread(target=lambda: found.append(native.invoke(ask(native))))
        worker.start()
        worker.join(20)
        assert found, "the call waited for the loop that waited for it"
        assert found[0].content[0]["text"] == "ok"
