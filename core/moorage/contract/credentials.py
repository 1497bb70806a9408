"""Credential interceptors: async callables around one tool call (CRED, PLUG-7)."""

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from moorage.contract.empty import EMPTY, empty
from moorage.contract.errors import CredentialDenied
from moorage.contract.identity import Principal
from moorage.contract.servers import ServerConfig, Transport
from moorage.contract.tools import CallPhase, ToolResult

if TYPE_CHECKING:
    from moorage.contract.gateway import GatewayContext


_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")  # RFC 9110, 5.6.2
_PROTOCOL_HEADERS = frozenset(
    {
        "host", "content-length", "content-type", "content-encoding", "transfer-encoding", "connection",
        "keep-alive", "te", "trailer", "upgrade", "expect", "accept", "accept-encoding", "last-event-id",
        "proxy-connection",
    }
)  # fmt: skip
_PROTOCOL_PREFIXES = ("mcp-",)


def check_header(name: object, value: object, *, source: str) -> tuple[str, str]:
    """Return the pair where HTTP can and may carry it (CRED-2).

    Raises `CredentialDenied` that names the header and ``source`` and never quotes the value.
    """
    if not isinstance(name, str) or not _TOKEN.fullmatch(name):
        raise CredentialDenied(f"{source}: a header name is no HTTP token")
    folded = name.lower()
    if folded in _PROTOCOL_HEADERS or folded.startswith(_PROTOCOL_PREFIXES):
        raise CredentialDenied(f"{source}: header {name!r} belongs to the protocol and cannot be set")
    if not isinstance(value, str):
        raise CredentialDenied(f"{source}: the value of header {name!r} is no text")
    if not (value.isascii() and value.isprintable()) or value != value.strip(" "):
        raise CredentialDenied(f"{source}: HTTP cannot carry the value of header {name!r}")
    return name, value


class Headers(Mapping[str, str]):
    """Immutable headers, case-insensitive, at most one spelling of a name (CRED-2).

    A changed header keeps the spelling that is already in use. ``repr`` shows names only.
    """

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[str, str] = EMPTY, *, source: str = "headers") -> None:
        self._items: dict[str, tuple[str, str]] = {}
        for name, value in items.items():
            pair = check_header(name, value, source=source)
            if pair[0].lower() in self._items:
                raise CredentialDenied(f"{source}: header {name!r} is given in two spellings")
            self._items[pair[0].lower()] = pair

    def __getitem__(self, name: str) -> str:
        return self._items[name.lower()][1]

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self._items.values())

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self._items

    def __repr__(self) -> str:
        return f"Headers({', '.join(self)})"

    def copy(self) -> "Headers":
        """The same headers, not checked again."""
        made = Headers.__new__(Headers)
        made._items = dict(self._items)
        return made

    def rechecked(self, trusted: "Headers", *, source: str) -> "Headers":
        """A copy in ``trusted``'s spelling, for headers that came back from somebody who was given a copy.

        What is not ``trusted``'s own pair is checked as if it were new. Raises `CredentialDenied` as
        `check_header` does, and where a name is there twice or the object was tampered with.
        """
        made = Headers.__new__(Headers)
        made._items = {}
        for key, pair in self._items.items():
            known = trusted._items.get(key)
            if pair is not known:
                if type(key) is not str or type(pair) is not tuple or len(pair) != 2:
                    raise CredentialDenied(f"{source}: handed on headers that were tampered with")
                name, value = check_header(*pair, source=source)
                folded = name.lower()
                known = trusted._items.get(folded)
                if folded != key or folded in made._items:
                    raise CredentialDenied(f"{source}: header {name!r} is given in two spellings")
                pair = (known[0] if known else name, value)
            made._items[key] = pair
        return made

    def replacing(self, name: str, value: str, *, source: str) -> "Headers":
        """A copy with one header set; the one way to write a header."""
        name, value = check_header(name, value, source=source)
        made = self.copy()
        kept = self._items.get(name.lower())
        made._items[name.lower()] = (kept[0] if kept else name, value)
        return made


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call on its way through the interceptor chain.

    Frozen, and made anew for each call: an interceptor hands ``next`` a changed copy. ``principal`` and
    ``secrets`` come from the gateway alone (RUN-9); ``secrets`` are empty outside the run (CRED-7).
    """

    server: ServerConfig
    tool: str
    """The raw tool name; empty for ``discover``."""
    arguments: Mapping[str, Any] = field(repr=False)
    headers: Headers
    phase: CallPhase
    principal: Principal | None
    secrets: Mapping[str, Any] = field(default_factory=empty, repr=False)
    thread_id: str | None = None
    run_id: str | None = None

    @property
    def transport(self) -> Transport:
        return self.server.transport

    def with_header(self, name: str, value: str, *, source: str) -> "ToolCall":
        """A copy with one header set (CRED-2). ``source`` names the interceptor in an error."""
        return self._copy(self.headers.replacing(name, value, source=source), self.arguments)

    def with_arguments(self, arguments: Mapping[str, Any]) -> "ToolCall":
        """A copy with other arguments."""
        return self._copy(self.headers, arguments)

    def _copy(self, headers: Headers, arguments: Mapping[str, Any]) -> "ToolCall":
        # Not `dataclasses.replace`: this is on the path of every call, several times, and costs a third.
        return ToolCall(
            self.server,
            self.tool,
            arguments,
            headers,
            self.phase,
            self.principal,
            self.secrets,
            self.thread_id,
            self.run_id,
        )


Next = Callable[[ToolCall], Awaitable[ToolResult]]


class Interceptor(Protocol):
    """``(call, next) -> result``: calls ``next`` at most once unless its spec says that it retries."""

    async def __call__(self, call: ToolCall, next: Next, /) -> ToolResult:  # noqa: A002
        """Raises `CredentialDenied` to refuse; anything else raised denies the call as well (PLUG-7)."""
        ...


class InterceptorRunner(Protocol):
    """The chain of all interceptors; a service of the gateway, for whoever calls servers."""

    async def run(self, call: ToolCall, terminal: Next) -> ToolResult:
        """Lead the call through the interceptors that concern it, and to ``terminal``.

        Raises `CredentialDenied` where one refuses, `PluginError` where one misbehaves (PLUG-7), and what
        ``terminal`` raises, unchanged. A `PluginError` carries ``sent`` in its ``__dict__``: false where
        ``terminal`` certainly had no effect.
        """
        ...


# Precedence: a higher one runs later (nearer to the server), so that what it writes wins (CRED-1).
# The built-in values leave room between them (PLUG-3).
PRECEDENCE_OAUTH = 1000
PRECEDENCE_USER_AUTH = 2000
PRECEDENCE_HEADERS_FROM_CONTEXT = 3000
PRECEDENCE_LOCAL = 9000
"""``mcpInterceptors`` without a precedence of their own (PLUG-9)."""

ALL_CALL_PHASES: frozenset[CallPhase] = frozenset({"call", "submit", "status", "cancel", "respond"})


@dataclass(frozen=True, slots=True)
class InterceptorSpec:
    """Contributes an interceptor, built once at start.

    ``section``: runs only for servers that have this config section; None for every server.
    ``timeout_seconds`` does not count the time of the inner call.
    """

    name: str
    precedence: int
    build: "Callable[[GatewayContext], Interceptor]"
    section: str | None = None
    phases: frozenset[CallPhase] = ALL_CALL_PHASES
    retries: bool = False
    answers: bool = False
    """It may answer in its own name, without calling ``next``."""
    http_only: bool = False
    """Warned about and skipped on a stdio server (CRED-6)."""
    timeout_seconds: float = 30.0
