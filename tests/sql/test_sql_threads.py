"""Threads (RUN-4, RUN-5)."""

import asyncio

import pytest
from support.clock import FakeClock

from moorage.contract import Store, TaskFilter

ODD = {"k\x00": "v\ud800", "none": None, "nested": {"a": [1, 2.5, True]}, "é": "ü"}


@pytest.mark.req("RUN-5", "BOUND-4")
async def test_a_thread_is_made_once_whoever_asks(store: Store, clock: FakeClock) -> None:
    made, now = await store.threads.create("t1", "alice", ODD)
    again, not_now = await store.threads.create("t1", "bob", {"other": 1})

    assert (now, not_now) == (True, False)
    assert made == again == await store.threads.get("t1")
    assert (made.user_id, made.metadata, made.status) == ("alice", ODD, "idle")
    assert made.created_at == made.updated_at == clock.now()
    assert await store.threads.get("t2") is None


@pytest.mark.req("RUN-5", "TASK-19")
async def test_the_same_thread_at_once_is_made_by_one_caller(store: Store) -> None:
    answers = await asyncio.gather(*(store.threads.create("t1", f"u{n}", {}) for n in range(10)))

    assert [made for _, made in answers].count(True) == 1
    assert len({thread.user_id for thread, _ in answers}) == 1


@pytest.mark.req("RUN-5")
async def test_metadata_merges_by_top_level_key_and_no_merge_is_lost(store: Store, clock: FakeClock) -> None:
    await store.threads.create("t1", "alice", {"a": {"x": 1}, "b": 1})
    clock.move(1)

    merged = await store.threads.merge_metadata("t1", {"a": {"y": 2}, "c": 3})
    await asyncio.gather(*(store.threads.merge_metadata("t1", {f"k{n}": n}) for n in range(10)))

    assert merged is not None
    assert merged.metadata == {"a": {"y": 2}, "b": 1, "c": 3}
    assert merged.updated_at == clock.now()
    final = await store.threads.get("t1")
    assert final is not None
    assert final.metadata == {**merged.metadata, **{f"k{n}": n for n in range(10)}}
    assert await store.threads.merge_metadata("t2", {}) is None


@pytest.mark.req("RUN-5")
async def test_a_search_matches_top_level_keys_by_equality(store: Store, clock: FakeClock) -> None:
    for number in range(4):
        await store.threads.create(f"t{number}", "alice", {"n": number, "even": number % 2 == 0, **ODD})
        clock.move(1)
    await store.threads.create("theirs", "bob", {"even": True})

    async def found(**wanted: object) -> list[str]:
        return [thread.thread_id for thread in await store.threads.search("alice", **wanted)]  # type: ignore[arg-type]

    assert await found() == ["t3", "t2", "t1", "t0"]
    assert await found(limit=2, offset=1) == ["t2", "t1"]
    assert await found(metadata={"even": True}) == ["t2", "t0"]
    assert await found(metadata={"even": True, "n": 0}) == ["t0"]
    assert await found(metadata={"even": 1}) == []
    assert await found(metadata={"k\x00": "v\ud800", "nested": {"a": [1, 2.5, True]}, "n": 3}) == ["t3"]
    assert await found(status="busy") == []
    await store.threads.merge_metadata("t1", {"even": True})
    assert await found(metadata={"even": True}) == ["t2", "t1", "t0"]


@pytest.mark.req("RUN-5", "BOUND-4")
@pytest.mark.parametrize("odd", ["'; --", "%", "a\x00b", "\ud800", "é" * 300])
async def test_a_strange_name_matches_nothing_and_breaks_nothing(store: Store, odd: str) -> None:
    await store.threads.create("t1", "alice", {"a": 1})

    assert await store.threads.search("alice", metadata={odd: odd}) == []
    assert await store.threads.search(odd, metadata={"a": 1}) == []
    assert await store.threads.get(odd) is None
    assert not await store.threads.delete(odd)
    assert await store.runs.get(odd) is None
    assert await store.events.list(odd, event_types=[odd], task_id=odd) == []
    assert await store.events.append(odd, event_type=odd) is None
    assert await store.keys.find(odd) is None
    assert await store.keys.revoke(odd) is None
    assert await store.memos.get(odd) is None
    assert await store.tasks.get(odd) is None
    assert await store.tasks.request_cancel(odd) is None
    assert (await store.tasks.list(TaskFilter(user_id=odd, thread_id=odd, name_or_id=odd))).items == []
    await store.tasks.delete_thread(odd, odd)
    await store.tasks.heartbeat(odd, 1)
