"""Which session a call goes through, and the loop that all sessions live on."""

import asyncio
import contextvars
import hashlib
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import httpx

from moorage.contract import CallPhase, Clock, GatewayContext, ServerConfig, ServerUnavailable
from moorage_drivers.mcp.connections import Connection
from moorage_drivers.mcp.http import http_connection, sse_connection
from moorage_drivers.mcp.pool import SessionKey, SessionPool
from moorage_drivers.mcp.redaction import Quoter
from moorage_drivers.mcp.session import Opener, Session
from moorage_drivers.mcp.stdio import stdio_connection
from moorage_drivers.mcp.workspace import UnsafeName, private_workspace, thread_root, thread_workspace

if TYPE_CHECKING:
    import ssl

T = TypeVar("T")
logger = logging.getLogger(__name__)

LOOP_ANSWERS_SECONDS = 2.0

DEFAULT_ROOM_WAIT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose session it is; both empty for what belongs to nobody."""

    user: str = ""
    thread: str | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """How many sessions may live, and how long without use."""

    stdio_sessions: int = 64
    http_sessions: int = 256
    idle_seconds: float = 1_800.0

    @classmethod
    def of(cls, gateway: GatewayContext) -> "Limits":
        """From the settings table ``plugins.mcp``."""
        own = gateway.settings.get("plugins.mcp") or dict(gateway.settings.get("plugins") or {}).get("mcp")
        return cls(**{key: value for key, value in dict(own or {}).items() if key in cls.__slots__})


class _Pools(NamedTuple):
    stdio: SessionPool
    http: SessionPool

    async def aclose(self) -> None:
        await asyncio.gather(*(pool.aclose() for pool in self))


_apart: ContextVar[_Pools | None] = ContextVar("moorage_mcp_apart", default=None)
"""The pools of a call that is made apart from the gateway's sessions (`Sessions.from_sync`)."""


async def _coroutine(work: Callable[[], Awaitable[T]]) -> T:
    return await work()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _fingerprint(headers: Mapping[str, str]) -> str:
    digest = hashlib.sha256()
    for name, value in sorted((name.lower(), value) for name, value in headers.items()):
        digest.update(f"{len(name)}:{name}{len(value)}:{value}".encode())
    return digest.hexdigest()


class Sessions:
    """All sessions of the gateway. They live on one event loop, the one that first used them (TOOL-6)."""

    def __init__(self, home: Path, clock: Clock, limits: Limits) -> None:
        # Resolved, since a process in it says so of its own working directory.
        self.home = home.resolve()
        self._clock = clock
        self._limits = limits
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tls: ssl.SSLContext | None = None
        self._tls_lock = threading.Lock()
        self._stateful: set[tuple[str, str]] = set()
        self._pools = self._new_pools()

    def _new_pools(self) -> "_Pools":
        limits, idle = self._limits, self._limits.idle_seconds
        return _Pools(
            SessionPool(self._clock, limit=limits.stdio_sessions, idle_seconds=idle, backoff=True),
            SessionPool(self._clock, limit=limits.http_sessions, idle_seconds=idle, backoff=False),
        )

    @property
    def pools(self) -> "_Pools":
        """Those of the present call: the gateway's, unless it had to be made apart."""
        return _apart.get() or self._pools

    async def at_home(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run it on the sessions' own loop, whichever loop this is called from."""
        here = asyncio.get_running_loop()
        if self._loop is None or self._loop.is_closed():
            if self._loop is not None:
                self._pools = self._new_pools()  # what lived on the closed loop is gone with it
            self._loop = here
        if self._loop is here or _apart.get() is not None:
            return await work()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_coroutine(work), self._loop))

    def from_sync(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run it for a synchronous caller, who may be what the sessions' loop is waiting for.

        Where that loop does not answer, the call is made apart, with a session of its own that ends with
        it: such a caller would otherwise wait for itself.
        """
        loop = self._loop
        if loop is not None and loop.is_running() and loop is not _running_loop():
            answered = threading.Event()
            loop.call_soon_threadsafe(answered.set)
            if answered.wait(LOOP_ANSWERS_SECONDS):
                return asyncio.run_coroutine_threadsafe(_coroutine(work), loop).result()
        logger.warning("a synchronous call blocks the gateway's event loop; it is made with its own session")
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="mcp-apart") as executor:
            context = contextvars.copy_context()
            return executor.submit(context.run, asyncio.run, self._alone(work)).result()

    async def _alone(self, work: Callable[[], Awaitable[T]]) -> T:
        pools = self._new_pools()
        _apart.set(pools)
        try:
            return await work()
        finally:
            await pools.aclose()

    @asynccontextmanager
    async def lease(
        self,
        server: ServerConfig,
        headers: Mapping[str, str],
        owner: Owner,
        phase: CallPhase,
        quoting: Quoter,
    ) -> AsyncIterator[Session]:
        """The session for this call, in use meanwhile. Raises `ServerUnavailable`."""
        if server.transport == "stdio":
            async with self._lease_stdio(server, owner, phase, quoting) as session:
                yield session
        else:
            async with self._lease_http(server, headers, owner, phase, quoting) as session:
                yield session

    @asynccontextmanager
    async def _lease_stdio(
        self, server: ServerConfig, owner: Owner, phase: CallPhase, quoting: Quoter
    ) -> AsyncIterator[Session]:
        discovery = phase == "discover"
        if discovery:
            owner = Owner()
        elif owner.thread is not None:
            try:
                thread_root(self.home, owner.user, owner.thread)
            except UnsafeName as error:
                raise ServerUnavailable(str(error), server=server.name, sent=False) from None
        key = SessionKey(server.name, owner.user, owner.thread, "discovery" if discovery else "")
        signature = server.launch_signature

        def make() -> Session:
            return self._session(server, lambda: self._stdio(server, owner, quoting), quoting)

        try:
            async with self.pools.stdio.lease(
                key, signature, make, wait_seconds=_room_wait(server)
            ) as session:
                yield session
        finally:
            if discovery:
                self.pools.stdio.retire(lambda candidate, _: candidate == key)

    @asynccontextmanager
    async def _lease_http(
        self,
        server: ServerConfig,
        headers: Mapping[str, str],
        owner: Owner,
        phase: CallPhase,
        quoting: Quoter,
    ) -> AsyncIterator[Session]:
        """Shared per credential, unless the server keeps state: then an agent's is its thread's alone."""
        credential = _fingerprint(headers)
        shared = SessionKey(server.name, credential=credential)
        own = SessionKey(server.name, owner.user, owner.thread, credential)
        identity = (server.name, server.launch_signature)
        may_share = phase not in ("call", "submit") or own == shared

        def make() -> Session:
            return self._session(server, lambda: self._remote(server, dict(headers)), quoting)

        for key in (shared, own):
            if key is shared and not may_share and identity in self._stateful:
                continue
            async with self.pools.http.lease(
                key, server.launch_signature, make, wait_seconds=_room_wait(server)
            ) as session:
                if session.stateful:
                    self._stateful.add(identity)
                if key is own or may_share or not session.stateful:
                    yield session
                    return

    def _session(self, server: ServerConfig, opener: Opener, quoting: Quoter) -> Session:
        return Session(server.name, opener, init_seconds=server.session_init_timeout_seconds, quoting=quoting)

    @asynccontextmanager
    async def _stdio(self, server: ServerConfig, owner: Owner, quoting: Quoter) -> AsyncIterator[Connection]:
        if owner.thread is not None:
            folder = await asyncio.to_thread(thread_workspace, self.home, owner.user, owner.thread)
            async with stdio_connection(server, folder, quoting) as connection:
                yield connection
            return
        private = private_workspace()
        try:
            async with stdio_connection(server, Path(private.name), quoting) as connection:
                yield connection
        finally:
            private.cleanup()

    @asynccontextmanager
    async def _remote(self, server: ServerConfig, headers: Mapping[str, str]) -> AsyncIterator[Connection]:
        tls = self._tls or await asyncio.to_thread(self._make_tls)
        transport: Any = sse_connection if server.transport == "sse" else http_connection
        async with transport(server, headers, tls) as connection:
            yield connection

    def _make_tls(self) -> "ssl.SSLContext":
        """Made once: it costs more than everything else of a connection (TOOL-5)."""
        with self._tls_lock:
            if self._tls is None:
                self._tls = httpx.create_ssl_context()
            return self._tls

    def follow(self, servers: Mapping[str, ServerConfig]) -> None:
        """Retire the sessions of servers that are gone, disabled or launched otherwise now (STDIO-6)."""
        current = {name: server.launch_signature for name, server in servers.items() if server.enabled}
        for pool in self.pools:
            pool.retire(lambda key, signature: current.get(key.server) != signature)

    async def close_thread(self, user: str, thread: str) -> None:
        """The thread is gone (TOOL-4)."""
        for pool in self.pools:
            await pool.close_where(lambda key: key.user == user and key.thread == thread)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Sweep while the gateway lives; close everything, in parallel and within bounds, at its end."""
        self._loop = asyncio.get_running_loop()
        sweepers = [asyncio.create_task(pool.run_sweeper()) for pool in self.pools]
        try:
            yield
        finally:
            for sweeper in sweepers:
                sweeper.cancel()
            await asyncio.gather(*sweepers, self.aclose(), return_exceptions=True)

    async def aclose(self) -> None:
        """Close all sessions at once."""
        await self._pools.aclose()


def _room_wait(server: ServerConfig) -> float:
    return server.session_init_timeout_seconds or DEFAULT_ROOM_WAIT_SECONDS
