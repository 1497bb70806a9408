"""Tool sources and calls: what an agent sees, and one call on its way to a server (TOOL)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol

from moorage.contract.empty import empty
from moorage.contract.identity import CallContext

if TYPE_CHECKING:
    from moorage.contract.gateway import GatewayContext


CallPhase = Literal["discover", "call", "submit", "status", "cancel", "respond"]
"""Why a server is called. ``discover`` covers initialisation and listing, which belong to no user."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A tool's answer in MCP's own shapes.

    ``content``: MCP content blocks as plain mappings (``{"type": "text", "text": ...}`` and so on).
    ``structured``: ``structuredContent`` as sent, None where absent. Both are the server's word and
    untrusted.
    """

    content: tuple[Mapping[str, Any], ...] = ()
    structured: Any = None
    is_error: bool = False
    meta: Mapping[str, Any] = field(default_factory=empty)
    native: object | None = field(default=None, compare=False, repr=False)
    """What an agent library returned in its own terms (a LangGraph command, say); passed through."""


@dataclass(frozen=True, slots=True)
class GatewayTool:
    """One tool as an assistant binds it.

    ``name`` is the visible name, ``native`` what the assistant's own library binds (a LangChain tool for
    the built-in sources). Routing follows ``server`` and ``raw_name``, never ``name`` (TOOL-3).
    """

    name: str
    raw_name: str
    server: str
    description: str
    input_schema: Mapping[str, Any]
    native: object = field(repr=False)
    durable: bool = False
    """True for the wrapper of a submit tool: it answers at once with a local task id (ORD-2)."""
    metadata: Mapping[str, Any] = field(default_factory=empty)


@dataclass(frozen=True, slots=True)
class ServerState:
    """What `GET /api/mcp/servers` shows of one server (TOOL-2)."""

    name: str
    transport: str
    enabled: bool
    state: Literal["unknown", "ready", "failed", "refused", "disabled"]
    tool_count: int = 0
    error: str | None = None
    """Redacted."""
    warnings: tuple[str, ...] = ()
    checked_at: datetime | None = None


class ToolCaller(Protocol):
    """Calls a raw tool on a server through the interceptor chain; a service of the gateway.

    Used by task drivers for background calls, with the same ``(server, user:thread)`` session as the
    agent's (ORD-6).
    """

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
        """One call, never repeated.

        The result is not checked against the tool's ``outputSchema``, a reply that lacks ``content`` is
        returned as it is (TASK-23), and a JSON-RPC error is an ``is_error`` result. Raises
        `ServerUnavailable` (with ``sent`` false where nothing can have reached the tool),
        `CredentialDenied`, `ProtocolViolation` for a reply that is no tool result, `TimeoutError`,
        `NotFound` for a server or a tool that may not be called.
        """
        ...


class ToolSource(Protocol):
    """Lists tools for a caller and keeps their sessions."""

    async def tools(self, context: CallContext) -> Sequence[GatewayTool]:
        """All tools this caller may see; a broken server costs only its own tools (TOOL-2)."""
        ...

    async def servers(self, *, probe: bool = False) -> Sequence[ServerState]:
        """Each server's state and last error; ``probe`` asks them anew."""
        ...

    async def reset(self) -> None:
        """Drop the cache (TOOL-7)."""
        ...

    async def close_thread(self, user_id: str, thread_id: str) -> None:
        """The thread is gone: close its sessions (TOOL-4)."""
        ...


@dataclass(frozen=True, slots=True)
class ToolSourceSpec:
    """Contributes a tool source. What must be closed is contributed as a life-cycle, too."""

    name: str
    build: "Callable[[GatewayContext], ToolSource]"
    timeout_seconds: float = 60.0
    """What each call may take; a source that is late for ``tools`` counts as having none (PLUG-7)."""
