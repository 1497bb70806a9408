"""An open connection to a server, and what its transport knows about failures."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

FaultKind = Literal["unreachable", "status", "lost", "broken", "malformed"]


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a request has no answer of the server's.

    ``unreachable``: nothing was sent. ``status``: an HTTP error. ``lost``: the server has forgotten the
    session. ``broken``: what came is no reply, or it ended early. ``malformed``: a reply that breaks the
    protocol, kept in ``reply`` as far as it can be read.
    """

    kind: FaultKind
    message: str
    status: int | None = None
    reply: Any = None

    @property
    def sent(self) -> bool:
        """False where the tool certainly was not reached: a client error is a refusal."""
        refused = self.kind == "status" and self.status is not None and 400 <= self.status < 500
        return not (self.kind in ("unreachable", "lost") or (refused and self.status != 408))


def _ignore_fault(_: int, __: Fault) -> None:
    return None


def _ignore_request(_: int) -> None:
    return None


async def _settled() -> None:
    return None


@dataclass(slots=True)
class Connection:
    """The two streams of an MCP session, and hooks between its transport and its session."""

    read: MemoryObjectReceiveStream[SessionMessage | Exception] = field(init=False)
    write: MemoryObjectSendStream[SessionMessage] = field(init=False)
    fail: Callable[[int, Fault], None] = _ignore_fault
    """The session's: ends the wait for the reply to this request."""
    abandon: Callable[[int], None] = _ignore_request
    """The transport's: nobody waits for this reply any more."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when nothing can come any more."""
    reason: str | None = None
    session_id: Callable[[], str | None] = lambda: None
    settle: Callable[[], Awaitable[None]] = _settled
    """Waits a moment for what `diagnosis` may still learn."""
    tail: Callable[[], str] = lambda: ""
    """The redacted end of a process's standard error."""
    returncode: Callable[[], int | None] = lambda: None

    def attach(
        self,
        read: MemoryObjectReceiveStream[SessionMessage | Exception],
        write: MemoryObjectSendStream[SessionMessage],
    ) -> None:
        """The streams are there once the transport is open."""
        self.read, self.write = read, write

    def diagnosis(self) -> str:
        """Why it ended, as far as known."""
        parts = [self.reason] if self.reason else []
        if (code := self.returncode()) is not None:
            parts.append(f"its process ended with status {code}")
        if tail := self.tail():
            parts.append(f"its standard error ends with: {tail}")
        return "; ".join(parts)
