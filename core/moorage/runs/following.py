"""Following a thread's event log as it grows (API-3, NOTE-4)."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

from moorage.contract.stores import RunEvent, Store, StoreSignal

LOOK_AGAIN_SECONDS = 2.0
"""Signals are hints, and none comes from another process on SQLite."""
PAGE = 100


async def follow(
    store: Store, thread_id: str, read: Callable[[int], Awaitable[Sequence[RunEvent]]], *, after_seq: int
) -> AsyncGenerator[RunEvent, None]:
    """Every event after ``after_seq``, then each new one, until closed.

    ``read(after_seq)`` returns the next page, at most `PAGE` rows; what it raises ends the stream (the
    thread is gone, say). The log is durable, so nothing between two pages, replicas or connections is lost.
    """
    loop, moved = asyncio.get_running_loop(), asyncio.Event()

    def heard(signal: StoreSignal) -> None:
        if signal.kind == "events" and signal.thread_id in (None, thread_id):
            loop.call_soon_threadsafe(moved.set)

    async with store.watch(heard):
        while True:
            moved.clear()
            rows = await read(after_seq)
            for row in rows:
                after_seq = row.seq
                yield row
            if len(rows) < PAGE:
                try:
                    await asyncio.wait_for(moved.wait(), LOOK_AGAIN_SECONDS)
                except TimeoutError:
                    continue
