"""One secret in every place that holds one, searched for in every output of ours (CRED-9)."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from support.mcp_servers import Gateway, context, gateway, http_server, remote, stdio

from moorage.contract import InterceptorRunner, Next, ServerConfig, ToolCall, ToolResult

SECRET = "canary-7f3a9c"


class Collector(AsyncCallbackHandler):
    """Keeps what tracing would see."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    async def on_tool_start(self, serialized: Any, input_str: str, **kwargs: Any) -> None:
        self.seen.append(f"{serialized} {input_str} {kwargs}")

    async def on_tool_end(self, output: Any, **kwargs: Any) -> None:
        self.seen.append(f"{output} {kwargs}")

    async def on_tool_error(self, error: BaseException, **kwargs: Any) -> None:
        self.seen.append(f"{error} {kwargs}")


class Adds:
    """Puts the request's secret into a header, as `headers_from_context` does."""

    async def run(self, call: ToolCall, terminal: Next) -> ToolResult:
        secret = call.secrets.get("tenant", f"{SECRET}-discovery")
        return await terminal(call.with_header("X-Tenant", secret, source="test"))


async def use(made: Gateway, names: list[str]) -> str:
    """Call tools in a graph under tracing; returns all that came out."""
    collector = Collector()
    tools = await made.tools()
    graph = StateGraph(MessagesState, context_schema=dict)  # type: ignore[type-var]
    natives: list[Any] = [tool.native for tool in tools.values()]
    graph.add_node("tools", ToolNode(natives))
    graph.add_edge(START, "tools")
    calls = [{"type": "tool_call", "id": name, "name": name, "args": {}} for name in names]
    live = {"moorage": context(), "secrets": {"tenant": f"{SECRET}-request"}}
    state = await graph.compile().ainvoke(
        {"messages": [AIMessage(content="", tool_calls=calls)]},
        config={"callbacks": [collector]},
        context=live,
    )
    states = [repr(state) for state in await made.catalogue.servers()]
    return "\n".join([*(str(message) for message in state["messages"]), *collector.seen, *states])


def server(url: str) -> ServerConfig:
    address = url.replace("http://", f"http://user:{SECRET}-password@") + f"?key={SECRET}-query"
    return remote("far", address, headers={"X-Api-Key": f"{SECRET}-static"})


@pytest.mark.req("CRED-9")
async def test_nothing_shows_a_secret_over_http(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), http_server("hostile_http") as url:
        async with gateway(tmp_path, server(url), server("http://127.0.0.1:9/mcp")) as made:
            made.context.provide(InterceptorRunner, Adds())
        async with gateway(tmp_path, server(url)) as made:
            made.context.provide(InterceptorRunner, Adds())
            out = await use(made, ["far_ok", "far_status_500", "far_html", "far_reset", "far_redirect_away"])
    assert "500" in out
    assert SECRET not in out
    assert SECRET not in caplog.text


@pytest.mark.req("CRED-9", "TOOL-9")
async def test_nothing_shows_a_secret_over_stdio(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    env = {"MCP_API_KEY": f"{SECRET}-env", "HOSTILE_LOG": str(tmp_path / "log")}
    servers = [stdio("near", "hostile", env=env), stdio("dies", "hostile", "die-at-start", env=env)]
    with caplog.at_level(logging.DEBUG):
        async with gateway(tmp_path, *servers) as made:
            made.context.provide(InterceptorRunner, Adds())
            out = await use(made, ["near_surrogate", "near_die", "near_rpc_error"])
    assert "MCP_API_KEY=***" in out
    assert SECRET not in out
    assert SECRET not in caplog.text
    assert f"{SECRET}-request" in (tmp_path / "log").read_text()


@pytest.mark.req("CRED-9")
async def test_what_is_hidden_from_the_log_still_reaches_the_server(tmp_path: Path) -> None:
    with http_server("echo_headers") as url:
        async with gateway(tmp_path, server(url)) as made:
            await made.tools()
            caller = made.catalogue.caller
            result = await caller.call("far", "seen", {}, context=context(), phase="call")
    records = result.structured["seen"]
    assert {record["path"] for record in records} == {f"/mcp?key={SECRET}-query"}
    for record in records:
        headers = {name.lower(): value for name, value in record["headers"]}
        assert headers["x-api-key"] == f"{SECRET}-static"
        assert headers["authorization"].startswith("Basic ")
    assert json.dumps(records)
