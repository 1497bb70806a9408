"""The plugin: MCP servers as a tool source. Imports little; what costs time waits until it is built."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from moorage.contract import (
    GatewayContext,
    LifecycleSpec,
    ThreadFiles,
    ToolCaller,
    ToolSource,
    ToolSourceSpec,
    hookimpl,
)

if TYPE_CHECKING:
    from moorage_drivers.mcp.catalogue import McpCatalogue

MOORAGE_API = ">=0.1"
BACKSTOP_SECONDS = 3_600.0
"""Each server has a bound of its own, which its config may raise (TOOL-8); this one covers all of them."""
LIFECYCLE_PRECEDENCE = 100
"""Low: sessions outlive what uses them, since life-cycles are left in reverse order."""


def _catalogue(gateway: GatewayContext) -> "McpCatalogue":
    """One per gateway, whichever of the two contributions is built first."""
    from moorage_drivers.mcp.caller import McpToolCaller
    from moorage_drivers.mcp.catalogue import McpCatalogue
    from moorage_drivers.mcp.changes import ChangeSummaries
    from moorage_drivers.mcp.files import HomeFiles
    from moorage_drivers.mcp.sessions import Limits, Sessions

    if gateway.has(McpCatalogue):
        return gateway.service(McpCatalogue)
    catalogue = McpCatalogue(gateway)
    sessions = Sessions(gateway.home, gateway.clock, Limits.of(gateway))
    changes = ChangeSummaries(gateway)
    catalogue.attach(sessions, McpToolCaller(gateway, sessions, changes, catalogue.hidden), changes)
    gateway.provide(McpCatalogue, catalogue)
    gateway.provide(ToolCaller, catalogue.caller)
    gateway.provide(ThreadFiles, HomeFiles(gateway.home))
    return catalogue


def _build(gateway: GatewayContext) -> ToolSource:
    return _catalogue(gateway)


@asynccontextmanager
async def _open(gateway: GatewayContext) -> AsyncIterator[None]:
    catalogue = _catalogue(gateway)
    catalogue.caller.freeze()
    async with catalogue.sessions.running():
        try:
            yield
        finally:
            await catalogue.reset()
            await catalogue.changes.aclose()


@hookimpl
def moorage_tool_sources() -> Sequence[ToolSourceSpec]:
    return (ToolSourceSpec("mcp", _build, timeout_seconds=BACKSTOP_SECONDS),)


@hookimpl
def moorage_lifecycle() -> Sequence[LifecycleSpec]:
    return (LifecycleSpec("mcp", LIFECYCLE_PRECEDENCE, _open),)
