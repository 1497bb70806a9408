"""One call to a raw tool: interceptors, session, answer (TOOL-8, TOOL-9, TASK-23)."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp import types

from moorage.contract import (
    CallContext,
    CallPhase,
    GatewayContext,
    Headers,
    InterceptorRunner,
    Next,
    NotFound,
    Principal,
    ServerConfig,
    ServerUnavailable,
    ToolCall,
    ToolResult,
)
from moorage.contract.empty import empty
from moorage_drivers.mcp.changes import ChangeSummaries
from moorage_drivers.mcp.listing import AnyResult, Listing, list_tools
from moorage_drivers.mcp.paths import Translator
from moorage_drivers.mcp.redaction import quoter
from moorage_drivers.mcp.session import JsonRpcError
from moorage_drivers.mcp.sessions import Owner, Sessions
from moorage_drivers.mcp.workspace import thread_root

BACKGROUND_PHASES: frozenset[CallPhase] = frozenset({"status", "cancel", "respond"})


@dataclass(frozen=True, slots=True)
class OnBehalf:
    """For whom a call is made. Without a principal it is anonymous, and no user's session."""

    principal: Principal | None = None
    thread_id: str | None = None
    run_id: str | None = None
    secrets: Mapping[str, Any] = field(default_factory=empty, repr=False)
    context: CallContext | None = None

    @classmethod
    def of(cls, context: CallContext, phase: CallPhase = "call") -> "OnBehalf":
        """Request secrets end with the run (CRED-7)."""
        live = not context.background and phase not in BACKGROUND_PHASES
        secrets = context.secrets if live else {}
        return cls(context.principal, context.thread_id, context.run_id, secrets, context)

    @property
    def owner(self) -> Owner:
        return Owner(self.principal.user_id if self.principal else "", self.thread_id)


class McpToolCaller:
    """The gateway's `ToolCaller`. ``hidden(server)`` names the raw tools that agents may not call."""

    def __init__(
        self,
        gateway: GatewayContext,
        sessions: Sessions,
        changes: ChangeSummaries,
        hidden: Callable[[ServerConfig], frozenset[str]],
    ) -> None:
        self._gateway = gateway
        self._sessions = sessions
        self._changes = changes
        self._hidden = hidden
        self._at_start: Mapping[str, ServerConfig] = {}

    def freeze(self) -> None:
        """Tasks under way finish on the servers as they are now (TASK-18)."""
        self._at_start = self._gateway.extensions.current().servers

    async def call(
        self,
        server: str,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        context: CallContext,
        phase: CallPhase,
        timeout_seconds: float | None = None,
    ) -> ToolResult:
        """See `ToolCaller.call`."""
        behalf = OnBehalf.of(context, phase)
        async with asyncio.timeout(timeout_seconds):
            return await self.invoke(server, tool, arguments, behalf=behalf, phase=phase)

    async def invoke(
        self,
        server_name: str,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        behalf: OnBehalf,
        phase: CallPhase,
    ) -> ToolResult:
        """The same for callers that may be anonymous."""
        server = self._server(server_name, phase)
        call = self._tool_call(server, tool, arguments, behalf, phase)

        async def terminal(final: ToolCall) -> ToolResult:
            return await self._send(server, final, behalf)

        async def whole() -> ToolResult:
            started_ns = time.time_ns()
            try:
                result = await self._run(call, terminal)
            finally:
                self._changes.note(server, behalf.owner, behalf.run_id, started_ns)
            return await self._with_virtual_paths(server, behalf.owner, phase, started_ns, result)

        return await self._sessions.at_home(whole)

    async def _with_virtual_paths(
        self, server: ServerConfig, owner: Owner, phase: CallPhase, started_ns: int, result: ToolResult
    ) -> ToolResult:
        """What an agent gets names files as it can name them itself (STDIO-4)."""
        if phase != "call" or server.transport != "stdio" or owner.thread is None:
            return result
        root = thread_root(self._sessions.home, owner.user, owner.thread)
        translator = Translator(root, root / "workspace", started_ns)
        if not translator.concerns(result):
            return result
        return await asyncio.to_thread(translator.result, result)

    async def discover(self, server: ServerConfig) -> Listing:
        """List a server's tools; bounded as a whole by its ``session_init_timeout`` (TOOL-8)."""
        call = self._tool_call(server, "", {}, OnBehalf(), "discover")
        found: list[Listing] = []

        async def terminal(final: ToolCall) -> ToolResult:
            quoting = quoter(self._gateway, server, final)
            async with self._sessions.lease(server, final.headers, Owner(), "discover", quoting) as session:
                found.append(await list_tools(session))
            return ToolResult(structured={"tools": len(found[-1].tools)})

        seconds = server.session_init_timeout_seconds
        try:
            async with asyncio.timeout(seconds):
                await self._run(call, terminal)
        except TimeoutError:
            raise ServerUnavailable(
                f"it did not start and list its tools within {seconds:g} seconds", server=server.name
            ) from None
        except JsonRpcError as error:
            raise ServerUnavailable(
                f"it refused to list its tools: {quoter(self._gateway, server, call).quote(str(error))}",
                server=server.name,
            ) from None
        if not found:
            raise ServerUnavailable("an interceptor answered in place of the server", server=server.name)
        return found[-1]

    async def _run(self, call: ToolCall, terminal: Next) -> ToolResult:
        if self._gateway.has(InterceptorRunner):
            runner: InterceptorRunner = self._gateway.service(InterceptorRunner)
            return await runner.run(call, terminal)
        return await terminal(call)

    def _server(self, name: str, phase: CallPhase) -> ServerConfig:
        if phase in BACKGROUND_PHASES and name in self._at_start:
            return self._at_start[name]
        snapshot = self._gateway.extensions.current()
        server = snapshot.servers.get(name)
        if server is None:
            reason = snapshot.refused.get(name, "no such server is configured")
            raise ServerUnavailable(reason, server=name, sent=False)
        if not server.enabled:
            raise ServerUnavailable("it is disabled", server=name, sent=False)
        return server

    def _tool_call(
        self,
        server: ServerConfig,
        tool: str,
        arguments: Mapping[str, Any],
        behalf: OnBehalf,
        phase: CallPhase,
    ) -> ToolCall:
        static = {} if server.transport == "stdio" else server.headers
        return ToolCall(
            server=server,
            tool=tool,
            arguments=arguments,
            headers=Headers(
                {name: value for name, value in static.items() if value},
                source=f"the headers of server {server.name!r}",
            ),
            phase=phase,
            principal=behalf.principal,
            secrets=behalf.secrets,
            thread_id=behalf.thread_id,
            run_id=behalf.run_id,
        )

    async def _send(self, server: ServerConfig, call: ToolCall, behalf: OnBehalf) -> ToolResult:
        """The innermost step; what an interceptor may have changed is judged here."""
        if call.phase == "call" and call.tool in self._hidden(server):
            raise NotFound(f"server {server.name!r} has no tool {call.tool[:100]!r} that may be called")
        meta = None
        if server.transport == "stdio" and call.headers:
            meta = types.RequestParams.Meta.model_validate({"headers": dict(call.headers)})
        params = types.CallToolRequestParams(name=call.tool, arguments=dict(call.arguments), _meta=meta)
        request = types.ClientRequest(types.CallToolRequest(params=params))
        quoting = quoter(self._gateway, server, call)
        async with self._sessions.lease(server, call.headers, behalf.owner, call.phase, quoting) as session:
            try:
                reply = await session.request(request, AnyResult, server.tool_call_timeout_seconds)
            except JsonRpcError as error:
                text = quoting.quote(str(error))
                return ToolResult(
                    content=({"type": "text", "text": text},),
                    is_error=True,
                    meta={"jsonrpc_error_code": error.code},
                )
        return tool_result(reply)


def tool_result(reply: AnyResult) -> ToolResult:
    """A reply in the contract's terms, as far as it has what a tool result has."""
    fields = reply.fields
    content, meta = fields.get("content"), fields.get("_meta")
    return ToolResult(
        content=tuple(block for block in content if isinstance(block, dict))
        if isinstance(content, list)
        else (),
        structured=fields.get("structuredContent"),
        is_error=fields.get("isError") is True,
        meta=meta if isinstance(meta, dict) else {},
    )
