"""The tools of all servers, as agents see them (TOOL-1, 2, 3, 7)."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from moorage.contract import (
    CallContext,
    ExtensionsSnapshot,
    GatewayContext,
    GatewayTool,
    MoorageError,
    RoutingHintProvider,
    ServerConfig,
    ServerState,
)
from moorage.contract.routing import ROUTING_METADATA
from moorage_drivers.mcp.bridge import durable_tool, ordinary_tool, shape_of
from moorage_drivers.mcp.caller import McpToolCaller
from moorage_drivers.mcp.changes import ChangeSummaries
from moorage_drivers.mcp.claims import Claims, claims_of
from moorage_drivers.mcp.listing import Listing, RawTool
from moorage_drivers.mcp.naming import Names, visible_names
from moorage_drivers.mcp.sessions import Sessions
from moorage_drivers.mcp.text import neutral

logger = logging.getLogger(__name__)

QUICK_SECONDS = 1.0
FIRST_RETRY_SECONDS = 1.0
MAX_RETRY_SECONDS = 30.0


@dataclass(slots=True, eq=False)
class _Known:
    """What was last heard of one server; ``server`` is the configuration that it was heard under."""

    server: ServerConfig
    listing: Listing | None = None
    claims: Claims = field(default_factory=Claims)
    error: str | None = None
    checked_at: datetime | None = None
    checked: float = 0.0
    took: float = 0.0
    retry_after: float = 0.0
    asking: asyncio.Task[None] | None = None


@dataclass(frozen=True, slots=True)
class _Built:
    """Tools made of these very listings."""

    made_of: tuple[Listing | None, ...]
    tools: tuple[GatewayTool, ...]
    names: Names


class McpCatalogue:
    """The built-in `ToolSource`."""

    def __init__(self, gateway: GatewayContext) -> None:
        self._gateway = gateway
        self._known: dict[str, _Known] = {}
        self._built: _Built | None = None
        self._snapshot: ExtensionsSnapshot | None = None
        self.sessions: Sessions
        self.caller: McpToolCaller
        self.changes: ChangeSummaries

    def attach(self, sessions: Sessions, caller: McpToolCaller, changes: ChangeSummaries) -> None:
        """The caller asks this catalogue which tools are hidden, so each needs the other."""
        self.sessions, self.caller, self.changes = sessions, caller, changes

    def hidden(self, server: ServerConfig) -> frozenset[str]:
        """Raw tools of the server that agents may not call, also where they name them exactly (ORD-2)."""
        known = self._known.get(server.name)
        if known is not None and known.server == server and known.listing is not None:
            claims = known.claims
        else:
            claims = claims_of(self._gateway, server, ())
        return frozenset(claims.hidden | claims.submit.keys())

    async def tools(self, context: CallContext) -> Sequence[GatewayTool]:
        """See `ToolSource.tools`. The tools are the same for every caller: whose call it is, is read when
        it is made (CRED-8)."""
        return await self.sessions.at_home(self._tools)

    async def servers(self, *, probe: bool = False) -> Sequence[ServerState]:
        """See `ToolSource.servers`."""
        return await self.sessions.at_home(lambda: self._servers(probe=probe))

    async def reset(self) -> None:
        """See `ToolSource.reset`."""
        for known in self._known.values():
            if known.asking is not None:
                known.asking.cancel()
        self._known.clear()
        self._built = None

    async def close_thread(self, user_id: str, thread_id: str) -> None:
        """See `ToolSource.close_thread`."""
        await self.sessions.at_home(lambda: self.sessions.close_thread(user_id, thread_id))

    async def _tools(self) -> Sequence[GatewayTool]:
        servers = self._current()
        await self._ask(servers, again=False)
        return self._build(servers).tools

    def _current(self) -> Mapping[str, ServerConfig]:
        snapshot = self._gateway.extensions.current()
        enabled = {name: server for name, server in snapshot.servers.items() if server.enabled}
        if snapshot is not self._snapshot:
            self._snapshot = snapshot
            self.sessions.follow(enabled)
            for name in self._known.keys() - enabled.keys():
                self._forget(name)
        return enabled

    def _forget(self, name: str) -> None:
        known = self._known.pop(name)
        if known.asking is not None:
            known.asking.cancel()

    async def _ask(self, servers: Mapping[str, ServerConfig], *, again: bool) -> None:
        """Ask all that must be asked, at once; wait for those that have nothing to show yet."""
        now = self._gateway.clock.monotonic()
        awaited = []
        for name, server in servers.items():
            known = self._known.get(name)
            if known is not None and known.server != server:
                self._forget(name)
                known = None
            if known is None:
                known = self._known[name] = _Known(server)
            first = known.checked_at is None
            due = known.error is not None and now - known.checked >= known.retry_after
            if known.asking is None and (first or due or again):
                known.asking = asyncio.create_task(self._discover(known), name=f"mcp-discover-{name}")
            # One that was slow to fail is tried again beside the run, not before it.
            if known.asking is not None and (first or again or known.took < QUICK_SECONDS):
                awaited.append(known.asking)
        if awaited:
            await asyncio.wait(awaited)

    async def _discover(self, known: _Known) -> None:
        server, clock = known.server, self._gateway.clock
        started = clock.monotonic()
        try:
            listing = await self.caller.discover(server)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            if not isinstance(error, MoorageError):
                logger.exception("listing the tools of server %r failed", server.name)
            known.error = neutral(str(error) or type(error).__name__, 4_000)
            known.retry_after = min(max(known.retry_after * 2, FIRST_RETRY_SECONDS), MAX_RETRY_SECONDS)
            logger.warning("server %r is left out: %s", server.name, known.error)
        else:
            known.error, known.retry_after = None, 0.0
            known.claims = claims_of(self._gateway, server, [tool.name for tool in listing.tools])
            known.listing = listing
        finally:
            known.asking = None
            known.checked_at, known.checked = clock.now(), clock.monotonic()
            known.took = known.checked - started

    def _build(self, servers: Mapping[str, ServerConfig]) -> _Built:
        known = [self._known[name] for name in sorted(servers) if name in self._known]
        listings = tuple(one.listing for one in known)
        if self._built is not None and self._built.made_of == listings:
            return self._built
        names = visible_names(
            ((one.server.name, tool.name), one.server.tool_name_prefix)
            for one in known
            for tool in (one.listing.tools if one.listing else ())
            if tool.name not in one.claims.hidden
        )
        tools = [
            self._tool(one, tool, names.visible[one.server.name, tool.name])
            for one in known
            for tool in (one.listing.tools if one.listing else ())
            if (one.server.name, tool.name) in names.visible
        ]
        for server, warnings in names.warnings.items():
            for warning in warnings:
                logger.warning("server %r: %s", server, warning)
        self._built = _Built(listings, tuple(tools), names)
        return self._built

    def _tool(self, known: _Known, tool: RawTool, name: str) -> GatewayTool:
        server, binding = known.server, known.claims.submit.get(tool.name)
        shape = shape_of(name, tool, durable=binding is not None)
        metadata = self._metadata(server, tool)
        native = (
            durable_tool(self._gateway, self.sessions, server.name, shape, binding, metadata)
            if binding is not None
            else ordinary_tool(self.caller, self.sessions, server.name, shape, tool, metadata)
        )
        return GatewayTool(
            name=name,
            raw_name=tool.name,
            server=server.name,
            description=shape.description,
            input_schema=shape.schema,
            native=native,
            durable=binding is not None,
            metadata=metadata,
        )

    def _metadata(self, server: ServerConfig, tool: RawTool) -> Mapping[str, Any]:
        metadata: dict[str, Any] = {**tool.annotations, "moorage_server": server.name}
        if self._gateway.has(RoutingHintProvider):
            provider: RoutingHintProvider = self._gateway.service(RoutingHintProvider)
            hint = provider.hint(server, tool.name)
            if hint is not None:
                metadata[ROUTING_METADATA] = hint.as_metadata()
        return metadata

    async def _servers(self, *, probe: bool) -> Sequence[ServerState]:
        enabled = self._current()
        if probe:
            await self._ask(enabled, again=True)
        snapshot = self._snapshot or self._gateway.extensions.current()
        built = self._build(enabled)
        states = [
            replace(
                self._state(server), warnings=(*self._warnings(name), *built.names.warnings.get(name, ()))
            )
            for name, server in snapshot.servers.items()
        ]
        states += [
            ServerState(name, "unknown", enabled=True, state="refused", error=reason)
            for name, reason in snapshot.refused.items()
            if name not in snapshot.servers
        ]
        return sorted(states, key=lambda state: state.name)

    def _warnings(self, name: str) -> Sequence[str]:
        known = self._known.get(name)
        if known is None:
            return ()
        listed = known.listing.warnings if known.listing is not None else ()
        return (*known.claims.errors, *listed)

    def _state(self, server: ServerConfig) -> ServerState:
        if not server.enabled:
            return ServerState(server.name, server.transport, enabled=False, state="disabled")
        known = self._known.get(server.name)
        if known is None or known.checked_at is None:
            return ServerState(server.name, server.transport, enabled=True, state="unknown")
        return ServerState(
            server.name,
            server.transport,
            enabled=True,
            state="ready" if known.error is None else "failed",
            tool_count=len(known.listing.tools) if known.listing is not None else 0,
            error=known.error,
            checked_at=known.checked_at,
        )
