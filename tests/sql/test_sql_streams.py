"""Copies of streams, for clients of other replicas (RUN-5, RUN-8)."""

from datetime import UTC, datetime
from typing import Any

import pytest
from support.clock import FakeClock

from moorage.contract import RunRecord, RunStatus, Store, StoreSignal, StreamRepository, StreamRow

pytestmark = pytest.mark.req("RUN-5", "RUN-8")

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def rows(*numbers: int) -> list[StreamRow]:
    return [StreamRow(number=n, event="values", mode="values", data_json=f'{{"n": {n}}}') for n in numbers]


@pytest.fixture
async def streams(store: Store) -> StreamRepository:
    await store.threads.create("t1", "alice", {})
    for name in ("r1", "r2"):
        run = RunRecord(
            run_id=name,
            thread_id="t1",
            user_id="alice",
            assistant_id="echo",
            status=RunStatus.PENDING,
            metadata={},
            created_at=NOW,
            updated_at=NOW,
        )
        await store.runs.create(run, exclusive=False)
    assert store.streams is not None
    return store.streams


async def test_a_copy_is_asked_for_and_read_in_order(streams: StreamRepository) -> None:
    token = await streams.ask("r1", 30)
    assert token is not None
    assert await streams.ask("r1", 30) == token
    assert await streams.asked() == {"r1": token}
    assert await streams.append(token, rows(2, 1), thread_id="t1")
    changed = StreamRow(number=1, event="other", mode=None, data_json="null")
    assert await streams.append(token, [changed, *rows(3)], thread_id="t1")
    assert await streams.list(token, after=0, limit=10) == rows(1, 2, 3)
    assert await streams.list(token, after=1, limit=1) == rows(2)
    assert await streams.list("another", after=0, limit=10) == []


async def test_text_that_no_database_takes_does_no_harm(streams: StreamRepository) -> None:
    token = await streams.ask("r1", 30)
    assert token is not None
    odd = StreamRow(number=1, event="values\x00", mode="\ud800", data_json='"\ud800 \\u0000 ü"')
    assert await streams.append(token, [odd], thread_id="t1")
    [found] = await streams.list(token, after=0, limit=1)
    assert (found.event, found.mode) == ("values\ufffd", "\ufffd")


async def test_nobody_can_ask_for_a_run_that_is_not_there(streams: StreamRepository) -> None:
    assert await streams.ask("nobodys", 30) is None
    assert await streams.ask("nobodys\x00", 30) is None
    assert not await streams.append("no-token", rows(1), thread_id="t1")


async def test_what_nobody_asks_for_any_more_goes_and_a_new_copy_is_another_one(
    streams: StreamRepository, clock: FakeClock
) -> None:
    first, kept = await streams.ask("r1", 30), await streams.ask("r2", 90)
    assert first is not None
    assert kept is not None
    for token in (first, kept):
        await streams.append(token, rows(1), thread_id="t1")
    clock.move(31)
    assert await streams.asked() == {"r2": kept}
    assert await streams.clear() == 1
    assert await streams.list(first, after=0, limit=10) == []
    assert await streams.list(kept, after=0, limit=10) == rows(1)
    assert not await streams.append(first, rows(2), thread_id="t1")
    second = await streams.ask("r1", 30)
    assert second != first


@pytest.mark.parametrize("what", ["run", "thread"])
async def test_a_copy_goes_with_its_run(streams: StreamRepository, store: Store, what: str) -> None:
    token = await streams.ask("r1", 30)
    assert token is not None
    await streams.append(token, rows(1), thread_id="t1")
    if what == "run":
        await store.runs.transition("r1", expected=frozenset({RunStatus.PENDING}), to=RunStatus.SUCCESS)
        await store.runs.delete("r1")
    else:
        await store.threads.delete("t1")
    assert await streams.asked() == {}
    assert await streams.list(token, after=0, limit=10) == []


async def test_both_sides_are_told(streams: StreamRepository, store: Store) -> None:
    heard: list[Any] = []

    def hear(signal: StoreSignal) -> None:
        heard.append((signal.kind, signal.thread_id))

    async with store.watch(hear):
        token = await streams.ask("r1", 30)
        assert token is not None
        await streams.append(token, rows(1), thread_id="t1")
    assert ("followers", None) in heard
    assert ("streams", "t1") in heard
