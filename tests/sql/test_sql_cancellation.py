"""Callers that go away in the middle of a call (TASK-4, TASK-11)."""

import asyncio
import gc
import warnings
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from moorage.clock import SystemClock
from moorage.contract import Store
from moorage_drivers.sql.store import open_store

CALLS: dict[str, Callable[[Store], Awaitable[object]]] = {
    "write": lambda store: store.memos.put("key", "value"),
    "read": lambda store: store.memos.get("key"),
    "claim": lambda store: store.tasks.claim("me", limit=8, lease_seconds=10),
}


async def cancelled_after(call: Awaitable[object], steps: int, again: bool) -> None:
    """Start the call, cancel it some steps of the loop later, and once more while it winds down."""
    task = asyncio.ensure_future(call)
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()
    if again:
        await asyncio.sleep(0)
        task.cancel()
    with suppress(asyncio.CancelledError):
        await task


@pytest.mark.req("TASK-4", "TASK-11")
@pytest.mark.parametrize("name", CALLS)
async def test_no_connection_is_lost_however_a_caller_is_cancelled(store_url: str, name: str) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for fresh in (True, False):
            async with open_store(store_url, SystemClock(), True) as store:
                if not fresh:
                    await store.memos.put("key", "value")
                for steps in range(40):
                    await cancelled_after(CALLS[name](store), steps, again=bool(steps % 2))
                await asyncio.gather(
                    *(cancelled_after(CALLS[name](store), steps % 40, again=False) for steps in range(80))
                )
                await store.memos.put("key", "still works")
                assert await store.memos.get("key") == "still works"
            gc.collect()
    assert [str(one.message) for one in told] == []


async def _watching(store: Store) -> None:
    async with store.watch(lambda signal: None):
        await asyncio.Event().wait()


@pytest.mark.req("TASK-11", "TASK-19")
async def test_no_connection_is_lost_by_who_stops_listening(store_url: str) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        async with open_store(store_url, SystemClock(), True) as store:
            for steps in range(60):
                async with store.watch(lambda signal: None):
                    for _ in range(steps):
                        await asyncio.sleep(0)
            for pause in range(20):
                async with store.watch(lambda signal: None):
                    await asyncio.sleep(pause / 1000)
            for steps in range(60):
                await cancelled_after(_watching(store), steps, again=True)
        gc.collect()
    assert [str(one.message) for one in told] == []
