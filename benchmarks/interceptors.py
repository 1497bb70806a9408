"""What the interceptor chain adds to one tool call: ``uv run python -m benchmarks.interceptors``.

The bare call is one of langchain-mcp-adapters' own tools on a session that is kept open, against a FastMCP
server in another process. The same calls then go through the chain with the three credential plugins, each
with a block for the server; the token endpoint runs in this process. Batches of both alternate.
"""

import argparse
import asyncio
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

from moorage.calls.chain import BuiltInterceptor, InterceptorChain
from moorage.calls.redact import SecretRegistry
from moorage.clock import SystemClock
from moorage.contract import (
    ExtensionsSnapshot,
    GatewayContext,
    Headers,
    Principal,
    Redactor,
    ServerConfig,
    ToolCall,
    ToolResult,
)
from moorage_plugins.headers_from_context import plugin as headers_from_context
from moorage_plugins.oauth import plugin as oauth
from moorage_plugins.user_auth import plugin as user_auth

PLUGINS = (oauth, user_auth, headers_from_context)
OK = ToolResult()


class _NoExtensions:
    def current(self) -> ExtensionsSnapshot:
        return ExtensionsSnapshot()


def whole_chain(home: Path) -> InterceptorChain:
    """The three credential plugins, built as a gateway builds them."""
    context = GatewayContext(
        home=home, replica_id="benchmark", database_url="", clock=SystemClock(), extensions=_NoExtensions()
    )
    context.provide(Redactor, SecretRegistry())
    return InterceptorChain(
        BuiltInterceptor(spec, spec.build(context), spec.name)
        for plugin in PLUGINS
        for spec in plugin.moorage_credential_interceptors()
    )


def full_call(token_url: str) -> ToolCall:
    """A call to a server that uses all sources, with an ordinary handful of arguments."""
    blocks: dict[str, dict[str, Any]] = {
        "oauth": {"token_url": token_url, "client_id": "benchmark"},
        "user_auth": {"header": "X-User", "users": {"alice": "Bearer token-of-alice"}},
        "headers_from_context": {"headers": {"X-Tenant": "tenant", "X-Trace": "trace"}},
    }
    sections = {
        section.name: section.load_model().model_validate(blocks[section.name])
        for plugin in PLUGINS
        for section in plugin.moorage_config_sections()
    }
    return ToolCall(
        server=ServerConfig(name="s", transport="http", url="http://127.0.0.1/mcp", sections=sections),
        tool="echo",
        arguments={"text": "hello", "options": {"limit": 10, "fields": ["a", "b"]}},
        headers=Headers({"Authorization": "Bearer static", "X-Team": "blue"}),
        phase="call",
        principal=Principal("alice"),
        secrets={"tenant": "secret-of-tenant", "trace": "secret-of-trace"},
    )


async def _microseconds(one: Callable[[], Awaitable[object]], calls: int) -> float:
    begun = time.perf_counter()
    for _ in range(calls):
        await one()
    return (time.perf_counter() - begun) / calls * 1e6


async def alone(chain: InterceptorChain, call: ToolCall, rounds: int) -> None:
    """The chain around a call that costs nothing."""

    async def terminal(call: ToolCall) -> ToolResult:
        return OK

    empty = InterceptorChain(())
    for name, tested in (("no interceptor", empty), ("three credential plugins", chain)):
        took = [await _microseconds(lambda t=tested: t.run(call, terminal), 1_000) for _ in range(rounds)]  # type: ignore[misc]
        print(f"{name}, around nothing: {min(took):.1f} µs")


async def on_a_session(chain: InterceptorChain, call: ToolCall, url: str, rounds: int, calls: int) -> None:
    """The chain around an adapter's call on a kept session, beside the bare call."""
    from langchain_mcp_adapters.tools import load_mcp_tools
    from mcp import ClientSession
    from mcp.client.streamable_http import streamable_http_client

    async with streamable_http_client(url) as (read, write, _), ClientSession(read, write) as session:
        await session.initialize()
        (tool,) = await load_mcp_tools(session)

        async def bare() -> object:
            return await tool.ainvoke({"text": "hello"})

        async def terminal(call: ToolCall) -> ToolResult:
            await bare()
            return OK

        async def chained() -> object:
            return await chain.run(call, terminal)

        await _microseconds(bare, calls)
        pairs = [
            (await _microseconds(bare, calls), await _microseconds(chained, calls)) for _ in range(rounds)
        ]
    plain, more = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(f"bare adapter call on a kept session: {plain:.0f} µs (median of {rounds} batches of {calls})")
    print(f"through the whole chain: {more:.0f} µs, {(more / plain - 1) * 100:+.1f} %")


@contextmanager
def token_endpoint() -> Iterator[str]:
    """Answers every POST with a token that lives for an hour."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"access_token": "token-of-benchmark", "expires_in": 3600}')

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/token"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def serve() -> None:
    """The MCP server, in a process of its own; prints its URL."""
    import uvicorn
    from mcp.server.fastmcp import FastMCP

    app = FastMCP("benchmark", json_response=True, log_level="ERROR")
    app.add_tool(_echo, name="echo")
    # With the protocol named, asyncio sets TCP_NODELAY; without it every reply waits 40 ms.
    with socket.socket(proto=socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
        uvicorn.Server(uvicorn.Config(app.streamable_http_app(), log_level="error")).run([listener])


def _echo(text: str) -> str:
    """Say it back."""
    return text


async def measure(rounds: int, calls: int) -> None:
    with (
        tempfile.TemporaryDirectory() as home,
        token_endpoint() as token_url,
        subprocess.Popen(
            [sys.executable, "-m", "benchmarks.interceptors", "--serve"], stdout=subprocess.PIPE, text=True
        ) as process,
    ):
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            chain, call = whole_chain(Path(home)), full_call(token_url)
            await alone(chain, call, rounds)
            await on_a_session(chain, call, url, rounds, calls)
        finally:
            process.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--calls", type=int, default=200, help="per batch")
    options = parser.parse_args()
    if options.serve:
        serve()
    else:
        asyncio.run(measure(options.rounds, options.calls))


if __name__ == "__main__":
    main()
