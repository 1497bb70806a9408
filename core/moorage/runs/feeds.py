"""A run's stream: a bounded buffer that many can read, from any point that it still holds (RUN-8)."""

import asyncio
import itertools
import json
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moorage.contract.clock import Clock
from moorage.contract.stores import RunRecord

KEPT_ITEMS = 5_000
KEPT_BYTES = 4 * 1024 * 1024
KEPT_FEEDS = 256
KEPT_FEED_BYTES = 64 * 1024 * 1024
KEPT_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class StreamItem:
    """One server-sent event: ``id`` is None where it cannot be resumed from."""

    id: str | None
    event: str
    data: Any


ELSEWHERE = "RunElsewhere"
"""The error that ends a feed whose run goes on in another process."""


def is_elsewhere(item: StreamItem) -> bool:
    return item.event == "error" and isinstance(item.data, Mapping) and item.data.get("error") == ELSEWHERE


def position_of(event_id: str | None) -> int | None:
    """The number that an id of ours stands for (None and ``-1``: the start, 0); None for what is none."""
    if event_id is None or event_id == "-1":
        return 0
    if event_id.isascii() and event_id.isdecimal() and len(event_id) < 16:
        return int(event_id)
    return None


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended. ``values`` is the thread's state as the run left it, None where there is none."""

    run: RunRecord
    values: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Kept:
    """One item of a feed; ``mode`` None concerns every subscriber."""

    number: int
    mode: str | None
    item: StreamItem
    size_bytes: int


def gap(*, after: str | None, first_kept: str | None, thread_id: str) -> StreamItem:
    """The one event that admits what is missing (RUN-8)."""
    return StreamItem(
        None,
        "gap",
        {
            "missing_after": after,
            "missing_before": first_kept,
            "message": "events between these ids are no longer kept; reload the thread's state",
            "reload": f"/threads/{thread_id}/state",
        },
    )


class RunFeed:
    """What one run streams. Written by its execution, read by any number of subscribers.

    Ids count from 1. A subscriber that lags behind what is kept gets a `gap`, too.
    """

    def __init__(self, run: RunRecord, *, kept_items: int = KEPT_ITEMS, kept_bytes: int = KEPT_BYTES) -> None:
        self.run = run
        self.values: Mapping[str, Any] | None = None
        self.result: RunResult | None = None
        self.closed_at: float | None = None
        self.size_bytes = 0
        self._kept: deque[Kept] = deque()
        self._limits = (kept_items, kept_bytes)
        self._count = 0
        self._changed = asyncio.Event()
        self._closed = asyncio.Event()

    def publish(self, event: str, data: Any, *, mode: str | None = None) -> None:
        """Append one item; ``mode`` None reaches every subscriber."""
        self._count += 1
        size = len(json.dumps(data, default=str))
        self._kept.append(Kept(self._count, mode, StreamItem(str(self._count), event, data), size))
        self.size_bytes += size
        items, kept_bytes = self._limits
        while len(self._kept) > items or (self.size_bytes > kept_bytes and len(self._kept) > 1):
            self.size_bytes -= self._kept.popleft().size_bytes
        self._wake()

    def close(self, result: RunResult, *, at: float) -> None:
        """Nothing follows."""
        self.result, self.closed_at = result, at
        self._closed.set()
        self._wake()

    async def finished(self) -> RunResult:
        """Wait for the end."""
        await self._closed.wait()
        assert self.result is not None
        return self.result

    async def read(self, *, modes: frozenset[str], last_event_id: str | None) -> AsyncIterator[StreamItem]:
        """Items after ``last_event_id`` (None or ``-1``: from the start) until the end."""
        position, known = self._position(last_event_id)
        if not known:
            yield gap(after=last_event_id, first_kept=self._first(), thread_id=self.run.thread_id)
        while True:
            changed = self._changed
            if self._kept and self._kept[0].number > position + 1:
                yield gap(after=str(position), first_kept=self._first(), thread_id=self.run.thread_id)
                position = self._kept[0].number - 1
            for kept in self._after(position):
                position = kept.number
                if kept.mode is None or not modes or kept.mode in modes:
                    yield kept.item
            if position >= self._count:
                if self._closed.is_set():
                    return
                await changed.wait()

    async def batches(self, size: int) -> AsyncIterator[Sequence[Kept]]:
        """All that is kept and then all that comes, to the end, at most ``size`` items at a time."""
        position = 0
        while True:
            changed = self._changed
            new = self._after(position)
            for start in range(0, len(new), size):
                yield new[start : start + size]
            if new:
                position = new[-1].number
            elif self._closed.is_set():
                return
            else:
                await changed.wait()

    def _position(self, last_event_id: str | None) -> tuple[int, bool]:
        """Where to go on, and whether that id is one of ours."""
        position = position_of(last_event_id)
        if position is not None and position <= self._count:
            return position, True
        return (self._kept[0].number - 1 if self._kept else 0), False

    def _after(self, position: int) -> list[Kept]:
        # From the newest backwards: who follows closely pays for what is new, not for all that is kept.
        new = list(itertools.takewhile(lambda kept: kept.number > position, reversed(self._kept)))
        new.reverse()
        return new

    def _first(self) -> str | None:
        return self._kept[0].item.id if self._kept else None

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


class Feeds:
    """The feeds of this process: those under way, and for a while those that have ended."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._feeds: OrderedDict[str, RunFeed] = OrderedDict()

    def __len__(self) -> int:
        return len(self._feeds)

    def open(self, run: RunRecord) -> RunFeed:
        self._forget()
        feed = self._feeds[run.run_id] = RunFeed(run)
        return feed

    def get(self, run_id: str) -> RunFeed | None:
        return self._feeds.get(run_id)

    def drop_thread(self, thread_id: str) -> None:
        """Forget the ended feeds of a deleted thread."""
        for run_id, feed in list(self._feeds.items()):
            if feed.run.thread_id == thread_id and feed.closed_at is not None:
                del self._feeds[run_id]

    def drop(self, run_id: str) -> None:
        self._feeds.pop(run_id, None)

    def _forget(self) -> None:
        closed = [(run_id, feed) for run_id, feed in self._feeds.items() if feed.closed_at is not None]
        size, now = sum(feed.size_bytes for _, feed in closed), self._clock.monotonic()
        for number, (run_id, feed) in enumerate(closed):
            left = len(closed) - number
            old = feed.closed_at is not None and now - feed.closed_at > KEPT_SECONDS
            if old or left > KEPT_FEEDS or size > KEPT_FEED_BYTES:
                size -= feed.size_bytes
                del self._feeds[run_id]
