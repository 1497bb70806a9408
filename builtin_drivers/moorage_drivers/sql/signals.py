"""Hints between whoever changes the database and whoever waits for a change (TASK-19).

Within the process they are plain calls. On PostgreSQL they also travel by NOTIFY, gathered for a moment
and sent outside of the transactions that they speak of: a NOTIFY inside would make commits queue up
behind each other.
"""

import asyncio
import json
import logging
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

import psycopg

from moorage.contract import SignalKind, StoreSignal

_log = logging.getLogger(__name__)

Heard = Callable[[StoreSignal], None]

_CHANNEL = "moorage"
_GATHERING_SECONDS = 0.01
_MOST_THREADS = 100
_FAREWELL_SECONDS = 2.0
_RECONNECT_SECONDS = 2.0
_KINDS: tuple[SignalKind, ...] = ("tasks", "notifications", "events", "streams", "followers")
_OF_THREADS = frozenset({"events", "streams"})


class LocalSignals:
    """Signals within this process."""

    def __init__(self) -> None:
        self._listeners: list[Heard] = []

    def tell(self, kind: SignalKind, thread_id: str | None = None) -> None:
        self._hear(StoreSignal(kind, thread_id))

    def watch(self, heard: Heard) -> AbstractAsyncContextManager[None]:
        """Call ``heard`` for every signal while entered."""
        return self._watch(heard)

    async def aclose(self) -> None:
        """Nothing is told any more."""

    @asynccontextmanager
    async def _watch(self, heard: Heard) -> AsyncIterator[None]:
        self._listeners.append(heard)
        try:
            yield
        finally:
            self._listeners.remove(heard)

    def _hear(self, signal: StoreSignal) -> None:
        for heard in tuple(self._listeners):
            try:
                heard(signal)
            except Exception:
                _log.exception("a listener to the store failed")


class PostgresSignals(LocalSignals):
    """Signals of all replicas on one database.

    ``notify(channel, message)`` sends; ``connect``: psycopg's arguments for the connection that listens.
    """

    def __init__(self, notify: Callable[[str, str], Awaitable[None]], connect: Mapping[str, Any]) -> None:
        """Must be called on the event loop that drives the database."""
        super().__init__()
        self._notify = notify
        self._connect = connect
        self._loop = asyncio.get_running_loop()
        self._me = uuid.uuid4().hex
        self._kinds: set[SignalKind] = set()
        self._threads: set[str] = set()
        self._sending: asyncio.Task[None] | None = None
        self._listening: asyncio.Task[None] | None = None
        self._watchers = 0
        self._closed = False

    def tell(self, kind: SignalKind, thread_id: str | None = None) -> None:
        super().tell(kind, thread_id)
        self._loop.call_soon_threadsafe(self._gather, kind, thread_id)

    @asynccontextmanager
    async def _watch(self, heard: Heard) -> AsyncIterator[None]:
        async with super()._watch(heard):
            self._watchers += 1
            if self._listening is None:
                self._listening = asyncio.create_task(self._listen())
            try:
                yield
            finally:
                self._watchers -= 1
                if not self._watchers:
                    await self._stop_listening()

    async def aclose(self) -> None:
        await asyncio.sleep(0)  # for what was told just now
        self._closed = True
        await self._stop_listening()
        if self._sending is not None:
            # What was told last is sent still: a replica that says farewell gives its leases back.
            with suppress(TimeoutError):
                await asyncio.wait_for(self._sending, timeout=_FAREWELL_SECONDS)

    # --- sending

    def _gather(self, kind: SignalKind, thread_id: str | None) -> None:
        if self._closed:
            return
        self._kinds.add(kind)
        if thread_id is not None:
            self._threads.add(thread_id)
        if self._sending is None:
            self._sending = asyncio.create_task(self._send())

    async def _send(self) -> None:
        try:
            while self._kinds:
                await asyncio.sleep(_GATHERING_SECONDS)
                await self._notify(_CHANNEL, self._message())
        except Exception as error:
            _log.debug("a signal to the other replicas was not sent: %s", type(error).__name__)
        finally:
            self._sending = None

    def _message(self) -> str:
        threads = sorted(self._threads) if len(self._threads) <= _MOST_THREADS else None
        message = json.dumps({"from": self._me, "kinds": sorted(self._kinds), "threads": threads})
        self._kinds.clear()
        self._threads.clear()
        return message

    # --- listening

    async def _stop_listening(self) -> None:
        listening, self._listening = self._listening, None
        if listening is not None:
            listening.cancel()
            # `wait` leaves the task alone when its own caller is cancelled: a second cancellation would
            # strike while the connection is being closed.
            await asyncio.wait({listening})

    async def _listen(self) -> None:
        """Listen until cancelled; a lost connection is made again, and what it missed is made up for."""
        while True:
            try:
                connection = await psycopg.AsyncConnection.connect(**self._connect, autocommit=True)
                try:
                    await connection.execute(f"LISTEN {_CHANNEL}")
                    for kind in _KINDS:
                        self._hear(StoreSignal(kind))
                    async for notify in connection.notifies():
                        self._received(notify.payload)
                finally:
                    await connection.close()
            except (psycopg.Error, OSError) as error:
                _log.info("signals of other replicas are not heard for now: %s", type(error).__name__)
            await asyncio.sleep(_RECONNECT_SECONDS)

    def _received(self, payload: str) -> None:
        try:
            message = json.loads(payload)
            sender, kinds, threads = message["from"], message["kinds"], message["threads"]
            if sender == self._me:
                return
            for kind in kinds:
                if kind not in _OF_THREADS or threads is None:
                    self._hear(StoreSignal(kind))
                else:
                    for thread_id in threads:
                        self._hear(StoreSignal(kind, str(thread_id)))
        except (ValueError, KeyError, TypeError):
            _log.debug("a signal that is none of ours was ignored")
