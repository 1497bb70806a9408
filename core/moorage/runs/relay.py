"""Streams across replicas: what a run streams here, for clients that follow it elsewhere (RUN-5, TASK-19).

A replica whose client follows a run that it does not execute asks for the stream in the store; the one that
executes the run copies it there from its start, for as long as somebody asks. Nothing is written of a run
that nobody follows elsewhere.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from moorage.contract.clock import Clock
from moorage.contract.stores import SignalKind, Store, StoreSignal, StreamRepository, StreamRow
from moorage.runs.feeds import Feeds, Kept, RunFeed, is_elsewhere

log = logging.getLogger(__name__)

LOOK_SECONDS = 2.0
"""Signals are hints, and none comes from another process on SQLite."""
CLEAR_SECONDS = 30.0
BATCH = 200
FAREWELL_SECONDS = 2.0


def streams_of(store: Store) -> StreamRepository | None:
    """None where the store cannot carry streams, one that was written before there were any included."""
    found: StreamRepository | None = getattr(store, "streams", None)
    return found


@asynccontextmanager
async def watching(
    store: Store, kind: SignalKind, thread_id: str | None = None
) -> AsyncIterator[asyncio.Event]:
    """An event that is set by every signal of this kind (and thread)."""
    loop, moved = asyncio.get_running_loop(), asyncio.Event()

    def heard(signal: StoreSignal) -> None:
        if signal.kind == kind and (thread_id is None or signal.thread_id in (None, thread_id)):
            loop.call_soon_threadsafe(moved.set)

    async with store.watch(heard):
        yield moved


@dataclass(slots=True)
class _Copying:
    token: str
    task: "asyncio.Task[None]"


class Relay:
    """Copies the streams that are asked for into the store."""

    def __init__(self, store: Store, feeds: Feeds, clock: Clock) -> None:
        self._store = store
        self._streams = streams_of(store)
        self._feeds = feeds
        self._clock = clock
        self._copying: dict[str, _Copying] = {}
        self._next_clear = clock.monotonic()

    def copies(self, run_id: str) -> bool:
        """Whether somebody follows this run elsewhere."""
        return run_id in self._copying

    async def run(self) -> None:
        """Loop until cancelled. A store that cannot be reached is tried again."""
        if self._streams is None:
            return
        async with watching(self._store, "followers") as moved:
            while True:
                moved.clear()
                try:
                    await self._look(self._streams)
                except Exception:
                    log.exception("looking for clients of other replicas failed and is tried again")
                await wait_for(moved, LOOK_SECONDS)

    async def finish(self) -> None:
        """The runs here have ended: give what is left of their streams to whoever follows."""
        tasks = [copying.task for copying in self._copying.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=FAREWELL_SECONDS)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _look(self, streams: StreamRepository) -> None:
        if self._clock.monotonic() >= self._next_clear:
            await streams.clear()
            self._next_clear = self._clock.monotonic() + CLEAR_SECONDS
        if not self._feeds and not self._copying:
            return
        asked = await streams.asked()
        for run_id, copying in list(self._copying.items()):
            if asked.get(run_id) != copying.token or _failed(copying.task):
                copying.task.cancel()
                del self._copying[run_id]
        for run_id, token in asked.items():
            feed = self._feeds.get(run_id)
            if feed is not None and run_id not in self._copying:
                task = asyncio.create_task(_copy(feed, streams, token), name=f"relay {run_id}")
                self._copying[run_id] = _Copying(token, task)


async def _copy(feed: RunFeed, streams: StreamRepository, token: str) -> None:
    async for kept in feed.batches(BATCH):
        # That it goes on elsewhere is of no interest to whoever follows from there.
        rows = [_row(one) for one in kept if not is_elsewhere(one.item)]
        if rows and not await streams.append(token, rows, thread_id=feed.run.thread_id):
            return


def _row(kept: Kept) -> StreamRow:
    data = json.dumps(kept.item.data, default=_plain)
    return StreamRow(number=kept.number, event=kept.item.event, mode=kept.mode, data_json=data)


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else str(value)


def _failed(task: "asyncio.Task[None]") -> bool:
    if not task.done() or task.cancelled() or task.exception() is None:
        return False
    log.warning("copying a stream for other replicas failed: %s", type(task.exception()).__name__)
    return True


async def wait_for(moved: asyncio.Event, seconds: float) -> None:
    """Until the event is set, at most so long."""
    try:
        async with asyncio.timeout(seconds):
            await moved.wait()
    except TimeoutError:
        pass
