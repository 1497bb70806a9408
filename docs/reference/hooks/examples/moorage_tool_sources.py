"""A tool that is no MCP server's: the date, for every agent."""

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from moorage.contract import (
    CallContext,
    GatewayContext,
    GatewayTool,
    ServerState,
    ToolSource,
    ToolSourceSpec,
    hookimpl,
)


class Dates:
    def __init__(self, context: GatewayContext) -> None:
        self._clock = context.clock

    async def tools(self, context: CallContext) -> Sequence[GatewayTool]:
        from langchain_core.tools import StructuredTool

        async def today() -> str:
            """Says which day it is."""
            return self._clock.now().date().isoformat()

        native: Any = StructuredTool.from_function(coroutine=today, name="today")
        return [
            GatewayTool(
                "today", "today", "(dates)", "Says which day it is.", {"type": "object"}, native=native
            )
        ]

    async def servers(self, *, probe: bool = False) -> Sequence[ServerState]:
        return ()

    async def reset(self) -> None:
        return None

    async def close_thread(self, user_id: str, thread_id: str) -> None:
        return None


def build(context: GatewayContext) -> ToolSource:
    return Dates(context)


@hookimpl
def moorage_tool_sources() -> Iterable[ToolSourceSpec]:
    return (ToolSourceSpec("dates", build),)


if __name__ == "__main__":
    import asyncio
    from pathlib import Path

    from moorage.contract import Principal
    from moorage.testing import gateway_context, host_with

    (one,) = host_with(sys.modules[__name__]).tool_sources()
    source = one.spec.build(gateway_context(Path("unused")))
    (tool,) = asyncio.run(source.tools(CallContext(Principal("alice"))))
    print(f"{tool.name}: {tool.description}")
