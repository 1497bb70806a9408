"""The event log of a thread (RUN-5, API-3)."""

import asyncio

import pytest
from support.clock import FakeClock

from moorage.contract import Store


@pytest.fixture(autouse=True)
async def threads(store: Store) -> None:
    await store.threads.create("t1", "alice", {})
    await store.threads.create("t2", "alice", {})


@pytest.mark.req("RUN-5", "BOUND-4")
async def test_an_event_comes_back_as_it_was_put(store: Store, clock: FakeClock) -> None:
    made = await store.events.append(
        "t1",
        event_type="task.attention",
        run_id="r1",
        task_id="k1",
        metadata={"a": "\x00"},
        payload=["\ud800", None, 1.5],
    )

    assert made is not None
    assert (made.seq, made.created_at, made.payload) == (1, clock.now(), ["\ud800", None, 1.5])
    assert await store.events.list("t1") == [made]
    assert await store.events.list("t2") == []


@pytest.mark.req("RUN-5", "NOTE-3")
async def test_an_event_never_creates_a_thread(store: Store) -> None:
    assert await store.events.append("gone", event_type="a") is None
    assert await store.threads.get("gone") is None


@pytest.mark.req("RUN-5", "RUN-8")
async def test_numbers_grow_without_gaps_under_many_writers(store: Store) -> None:
    made = await asyncio.gather(*(store.events.append("t1", event_type=f"e{n}") for n in range(40)))

    assert sorted(event.seq for event in made if event is not None) == list(range(1, 41))
    other = await store.events.append("t2", event_type="e")
    assert other is not None
    assert other.seq == 1


@pytest.mark.req("RUN-5")
async def test_filters_and_resumption(store: Store) -> None:
    for number in range(6):
        await store.events.append(
            "t1", event_type="ab"[number % 2], run_id=f"r{number % 3}", task_id=f"k{number // 3}"
        )

    async def seqs(**wanted: object) -> list[int]:
        return [event.seq for event in await store.events.list("t1", **wanted)]  # type: ignore[arg-type]

    assert await seqs() == [1, 2, 3, 4, 5, 6]
    assert await seqs(after_seq=4) == [5, 6]
    assert await seqs(limit=2, after_seq=1) == [2, 3]
    assert await seqs(event_types=["a"]) == [1, 3, 5]
    assert await seqs(event_types=["a", "b"], run_id="r1") == [2, 5]
    assert await seqs(event_types=[]) == []
    assert await seqs(task_id="k1") == [4, 5, 6]
