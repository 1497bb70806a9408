"""The sessions that are alive, by whom they belong to (TOOL-4, TOOL-5, STDIO-3, STDIO-6)."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from moorage.contract import Clock, ServerUnavailable
from moorage_drivers.mcp.session import Session

logger = logging.getLogger(__name__)

DEATHS_BEFORE_BACKOFF = 3
DEATH_WINDOW_SECONDS = 30.0
MAX_BACKOFF_SECONDS = 30.0
SHUTDOWN_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class SessionKey:
    """Structured, so that no two owners ever meet in one key (STDIO-6).

    ``credential`` is a fingerprint of the headers, empty for stdio.
    """

    server: str
    user: str = ""
    thread: str | None = None
    credential: str = field(default="", repr=False)


@dataclass(slots=True, eq=False)
class _Entry:
    session: Session
    signature: str
    users: int = 0
    last_used: float = 0.0
    retired: bool = False


@dataclass(slots=True)
class _Deaths:
    times: deque[float] = field(default_factory=lambda: deque(maxlen=DEATHS_BEFORE_BACKOFF))
    delay: float = 0.0
    until: float = 0.0


class SessionPool:
    """Sessions by key; concurrent first users of a key share one creation.

    At most ``limit`` live at once: the least recently used idle one makes room, one in use never does.
    With ``backoff``, a key whose sessions keep dying has to wait (STDIO-3).
    """

    def __init__(self, clock: Clock, *, limit: int, idle_seconds: float, backoff: bool) -> None:
        self._clock = clock
        self._limit = limit
        self._backoff = backoff
        self._idle_seconds = idle_seconds
        self._entries: dict[SessionKey, _Entry] = {}
        self._deaths: dict[SessionKey, _Deaths] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._freed = asyncio.Condition()
        self._closed = False

    def keys(self) -> frozenset[SessionKey]:
        """Whose sessions are registered at the moment."""
        return frozenset(self._entries)

    @asynccontextmanager
    async def lease(
        self, key: SessionKey, signature: str, make: Callable[[], Session], *, wait_seconds: float | None
    ) -> AsyncIterator[Session]:
        """A ready session of this key, held in use meanwhile. Raises `ServerUnavailable`, ``sent`` false.

        Another ``signature`` than the registered session's retires that one (STDIO-6). ``wait_seconds``
        bounds the wait for room in the pool.
        """
        entry = self._present(key, signature)
        if entry is None:
            self._refuse_backoff(key)
            await self._make_room(key, wait_seconds)
            entry = self._present(key, signature) or self._create(key, signature, make)
        entry.users += 1
        try:
            await entry.session.ready()
            yield entry.session
        finally:
            entry.users -= 1
            entry.last_used = self._clock.monotonic()
            if entry.users == 0 and (entry.retired or entry.session.dead or not entry.session.opened):
                self._drop(key, entry)
            await self._tell_freed()

    def retire(self, condition: Callable[[SessionKey, str], bool]) -> None:
        """Close, as soon as they are idle, the sessions of which ``condition(key, signature)`` holds."""
        for key, entry in list(self._entries.items()):
            if condition(key, entry.signature):
                self._retire(key, entry)

    async def close_where(self, condition: Callable[[SessionKey], bool]) -> None:
        """Close sessions now, in use or not, and wait for it."""
        found = [(key, entry) for key, entry in self._entries.items() if condition(key)]
        tasks = [self._drop(key, entry) for key, entry in found]
        await _bounded(task for task in tasks if task is not None)

    def sweep(self) -> None:
        """Close what has been idle for too long."""
        now = self._clock.monotonic()
        for key, entry in list(self._entries.items()):
            if entry.users == 0 and now - entry.last_used > self._idle_seconds:
                self._drop(key, entry)
        for key, deaths in list(self._deaths.items()):
            if now - max(deaths.times[-1], deaths.until) > DEATH_WINDOW_SECONDS:
                del self._deaths[key]

    async def run_sweeper(self) -> None:
        """Sweep for ever; the owner cancels it."""
        while True:
            await self._clock.sleep(max(self._idle_seconds / 4, 0.05))
            self.sweep()

    async def aclose(self) -> None:
        """Close all sessions at once, within a bounded time."""
        self._closed = True
        for key, entry in list(self._entries.items()):
            self._drop(key, entry)
        await _bounded(self._closing)

    def _present(self, key: SessionKey, signature: str) -> _Entry | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        if entry.session.dead:
            self._ended(key, entry)
            return None
        if entry.signature != signature:
            self._retire(key, entry)
            return None
        return entry

    def _create(self, key: SessionKey, signature: str, make: Callable[[], Session]) -> _Entry:
        if self._closed:
            raise ServerUnavailable("the gateway is shutting down", server=key.server, sent=False)
        session = make()
        entry = self._entries[key] = _Entry(session, signature, last_used=self._clock.monotonic())
        session.on_end = lambda: self._ended(key, entry)
        session.start()
        return entry

    async def _make_room(self, key: SessionKey, wait_seconds: float | None) -> None:
        try:
            async with asyncio.timeout(wait_seconds), self._freed:
                while key not in self._entries and len(self._entries) >= self._limit:
                    idle = [(e.last_used, k, e) for k, e in self._entries.items() if e.users == 0]
                    if idle:
                        _, oldest, entry = min(idle, key=lambda item: item[0])
                        self._drop(oldest, entry)
                    else:
                        await self._freed.wait()
        except TimeoutError:
            raise ServerUnavailable(
                f"all {self._limit} sessions of this gateway are in use; try again later",
                server=key.server,
                sent=False,
            ) from None

    async def _tell_freed(self) -> None:
        # Without a task of its own a cancelled caller could not tell the others.
        with suppress(RuntimeError):
            async with self._freed:
                self._freed.notify_all()

    def _retire(self, key: SessionKey, entry: _Entry) -> None:
        entry.retired = True
        if self._entries.get(key) is entry:
            del self._entries[key]
        if entry.users == 0:
            self._close(entry)

    def _drop(self, key: SessionKey, entry: _Entry) -> asyncio.Task[None] | None:
        entry.retired = True
        if self._entries.get(key) is entry:
            del self._entries[key]
        return self._close(entry)

    def _close(self, entry: _Entry) -> asyncio.Task[None]:
        task = asyncio.create_task(entry.session.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        return task

    def _ended(self, key: SessionKey, entry: _Entry) -> None:
        """The session has ended by itself, unless the entry was retired. Exactly this entry goes."""
        if entry.retired:
            return
        self._drop(key, entry)
        if not self._backoff:
            return
        deaths = self._deaths.setdefault(key, _Deaths())
        now = self._clock.monotonic()
        deaths.times.append(now)
        if len(deaths.times) < DEATHS_BEFORE_BACKOFF or now - deaths.times[0] > DEATH_WINDOW_SECONDS:
            deaths.delay = 0.0
            return
        deaths.delay = min(max(deaths.delay * 2, 1.0), MAX_BACKOFF_SECONDS)
        deaths.until = now + deaths.delay

    def _refuse_backoff(self, key: SessionKey) -> None:
        deaths = self._deaths.get(key)
        left = deaths.until - self._clock.monotonic() if deaths else 0.0
        if left > 0:
            raise ServerUnavailable(
                f"it died {DEATHS_BEFORE_BACKOFF} times within {DEATH_WINDOW_SECONDS:g} seconds; "
                f"it will be started again in {left:.1f} seconds at the earliest",
                server=key.server,
                sent=False,
            )


async def _bounded(tasks: Iterable[asyncio.Task[None]]) -> None:
    waiting = set(tasks)
    if waiting:
        await asyncio.wait(waiting, timeout=SHUTDOWN_SECONDS)
