"""A server made with the package fastmcp, run by the interpreter of an environment that has it."""

import asyncio
import sys
from dataclasses import dataclass

from fastmcp import Context, FastMCP  # type: ignore[import-not-found] # in the peer's environment
from fastmcp.exceptions import ToolError  # type: ignore[import-not-found]

server = FastMCP("harbour", instructions="Ask about ships.")


@dataclass
class Ship:
    name: str
    tons: int


@server.tool  # type: ignore[untyped-decorator]
def ship(name: str, tons: int = 400) -> Ship:
    """A ship as structured content."""
    return Ship(name, tons)


@server.tool  # type: ignore[untyped-decorator]
async def slow(seconds: float, context: Context) -> str:
    """Reports progress and log lines before it answers."""
    for step in range(5):
        await context.report_progress(step, 5)
        await context.info(f"step {step}")
        await asyncio.sleep(seconds / 5)
    return "done"


@server.tool  # type: ignore[untyped-decorator]
def sink() -> str:
    """Fails."""
    raise ToolError("the ship has sunk")


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run(show_banner=False)
    else:
        server.run(transport="http", host="127.0.0.1", port=int(sys.argv[2]), show_banner=False)
