"""Tool calls through Moorage beside the bare adapters: ``uv run python -m benchmarks.tool_calls``.

Everything in one run, one caller, the same server process a case.
"""

import asyncio
from pathlib import Path
from typing import Any

from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.sessions import Connection
from langchain_mcp_adapters.tools import load_mcp_tools

from benchmarks.mcp_parts import SERVER, WHO, drivers, http_server, rate, remote_server, stdio_server
from moorage.contract import ServerConfig, ToolCaller, ToolSource
from moorage_drivers.mcp.catalogue import McpCatalogue

ARGUMENTS = {"text": "hello"}


async def _through_moorage(server: ServerConfig) -> tuple[float, float]:
    async with drivers(server) as context:
        source: ToolSource = context.service(McpCatalogue)
        tool: Any = next(tool.native for tool in await source.tools(WHO) if tool.raw_name == "echo")
        caller = context.service(ToolCaller)
        as_tool = await rate(lambda: tool.ainvoke(ARGUMENTS))
        raw = await rate(lambda: caller.call(server.name, "echo", ARGUMENTS, context=WHO, phase="call"))
        return as_tool, raw


async def _kept(connection: Connection) -> tuple[float, float]:
    client = MultiServerMCPClient({"s": connection})
    async with client.session("s") as session:
        tool: Any = next(tool for tool in await load_mcp_tools(session) if tool.name == "echo")
        as_tool = await rate(lambda: tool.ainvoke(ARGUMENTS))
        return as_tool, await rate(lambda: session.call_tool("echo", ARGUMENTS))


async def _per_call(connection: Connection) -> float:
    client = MultiServerMCPClient({"s": connection})
    tool: Any = next(tool for tool in await client.get_tools() if tool.name == "echo")
    return await rate(lambda: tool.ainvoke(ARGUMENTS))


def _line(what: str, as_tool: float, raw: float | None = None) -> None:
    print(f"  {what:<44}{as_tool:>10,.0f}" + (f"{raw:>12,.0f}" if raw is not None else ""))


async def main() -> None:
    """Print calls a second: as an agent's tool, and without the tool around."""
    print(f"calls/s, one caller{'':<27}{'tool':>10}{'raw call':>12}")
    print("stdio")
    stdio: Connection = {
        "transport": "stdio",
        "command": SERVER[0],
        "args": SERVER[1:],
        "cwd": str(Path.cwd()),
    }
    _line("adapters, one kept session", *await _kept(stdio))
    _line("Moorage", *await _through_moorage(stdio_server("s")))
    for flags in ((), ("--json",), ("--stateless", "--json")):
        print(f"streamable HTTP, {' '.join(flags).replace('--', '') or 'stateful, SSE'}")
        with http_server(*flags) as url:
            remote: Connection = {"transport": "streamable_http", "url": url}
            alone = await _per_call(remote)
            _line("adapters, a connection a call", alone)
            _line("adapters, one kept session", *await _kept(remote))
            as_tool, raw = await _through_moorage(remote_server("s", url))
            _line("Moorage", as_tool, raw)
            print(f"  {'Moorage / a connection a call':<44}{as_tool / alone:>10.1f}")


if __name__ == "__main__":
    asyncio.run(main())
