"""Runs (RUN-1, RUN-2, RUN-5; NOTE-2)."""

import asyncio
from typing import Any

import pytest
from support.clock import FakeClock

from moorage.contract import Conflict, NotFound, RunRecord, RunStatus, Store, ThreadBusy

ACTIVE = frozenset({RunStatus.PENDING, RunStatus.RUNNING})


@pytest.fixture(autouse=True)
async def thread(store: Store) -> None:
    await store.threads.create("t1", "alice", {})


def new_run(run_id: str, clock: FakeClock, **fields: Any) -> RunRecord:
    given: dict[str, Any] = {
        "thread_id": "t1",
        "user_id": "alice",
        "assistant_id": "direct",
        "status": RunStatus.PENDING,
        "metadata": {"m": "\x00\ud800"},
        "kwargs": {"input": {"messages": []}},
        "owner": "replica-1",
        "created_at": clock.now(),
        "updated_at": clock.now(),
        **fields,
    }
    return RunRecord(run_id=run_id, **given)


async def thread_status(store: Store) -> str:
    thread = await store.threads.get("t1")
    assert thread is not None
    return thread.status


@pytest.mark.req("RUN-5")
async def test_a_run_comes_back_as_it_was_put_and_makes_its_thread_busy(
    store: Store, clock: FakeClock
) -> None:
    run = new_run("r1", clock, internal=True, idempotency_key="k", multitask_strategy="enqueue", error="e")

    made, now = await store.runs.create(run, exclusive=True)

    assert (made, now) == (run, True)
    assert await store.runs.get("r1") == run
    thread = await store.threads.get("t1")
    assert thread is not None
    assert (thread.status, thread.last_assistant_id) == ("busy", "direct")


@pytest.mark.req("RUN-2", "NOTE-3")
async def test_a_run_never_creates_its_thread(store: Store, clock: FakeClock) -> None:
    with pytest.raises(NotFound):
        await store.runs.create(new_run("r1", clock, thread_id="gone"), exclusive=False)

    assert await store.runs.get("r1") is None
    assert await store.threads.get("gone") is None


@pytest.mark.req("NOTE-2", "NOTE-3")
async def test_a_known_idempotency_key_returns_its_run_also_where_the_thread_is_busy(
    store: Store, clock: FakeClock
) -> None:
    runs = [new_run(f"r{n}", clock, idempotency_key="task:1:0") for n in range(6)]

    answers = await asyncio.gather(*(store.runs.create(run, exclusive=True) for run in runs))

    assert [made for _, made in answers].count(True) == 1
    assert len({run.run_id for run, _ in answers}) == 1
    await store.threads.create("t2", "alice", {})
    _, made = await store.runs.create(
        new_run("r9", clock, thread_id="t2", idempotency_key="task:1:0"), exclusive=True
    )
    assert made


@pytest.mark.req("RUN-5")
async def test_of_exclusive_runs_at_once_one_begins(store: Store, clock: FakeClock) -> None:
    answers = await asyncio.gather(
        *(store.runs.create(new_run(f"r{n}", clock), exclusive=True) for n in range(8)),
        return_exceptions=True,
    )

    begun = [answer for answer in answers if not isinstance(answer, BaseException)]
    assert len(begun) == 1
    assert all(isinstance(answer, ThreadBusy) for answer in answers if isinstance(answer, BaseException))
    await store.runs.create(new_run("r9", clock), exclusive=False)
    with pytest.raises(Conflict, match="r9"):
        await store.runs.create(new_run("r9", clock), exclusive=False)


@pytest.mark.req("RUN-5")
@pytest.mark.parametrize(
    ("end", "thread_after"),
    [
        (RunStatus.SUCCESS, "idle"),
        (RunStatus.ERROR, "error"),
        (RunStatus.TIMEOUT, "error"),
        (RunStatus.INTERRUPTED, "interrupted"),
    ],
)
async def test_a_run_ends_once_and_its_thread_follows(
    store: Store, clock: FakeClock, end: RunStatus, thread_after: str
) -> None:
    await store.runs.create(new_run("r1", clock), exclusive=True)
    clock.move(1)

    assert await store.runs.transition("r1", expected=frozenset({RunStatus.PENDING}), to=RunStatus.RUNNING)
    assert await thread_status(store) == "busy"
    assert await store.runs.transition("r1", expected=ACTIVE, to=end, error="why\x00")
    assert not await store.runs.transition("r1", expected=ACTIVE, to=RunStatus.SUCCESS)

    run = await store.runs.get("r1")
    assert run is not None
    assert (run.status, run.error, run.updated_at) == (end, "why\ufffd", clock.now())
    assert await thread_status(store) == thread_after
    assert not await store.runs.transition("unknown", expected=ACTIVE, to=end)


@pytest.mark.req("RUN-5")
async def test_a_thread_is_busy_until_its_last_run_has_ended(store: Store, clock: FakeClock) -> None:
    for name in ("r1", "r2"):
        await store.runs.create(new_run(name, clock), exclusive=False)

    await store.runs.transition("r1", expected=ACTIVE, to=RunStatus.ERROR)
    assert await thread_status(store) == "busy"
    await store.runs.transition("r2", expected=ACTIVE, to=RunStatus.SUCCESS)
    assert await thread_status(store) == "idle"


@pytest.mark.req("RUN-5")
async def test_runs_are_listed_newest_first(store: Store, clock: FakeClock) -> None:
    for number in range(4):
        await store.runs.create(new_run(f"r{number}", clock), exclusive=False)
        clock.move(1)
    await store.runs.transition("r2", expected=ACTIVE, to=RunStatus.SUCCESS)

    async def listed(**wanted: Any) -> list[str]:
        return [run.run_id for run in await store.runs.list("t1", **wanted)]

    assert await listed() == ["r3", "r2", "r1", "r0"]
    assert await listed(limit=2, offset=1) == ["r2", "r1"]
    assert await listed(status=RunStatus.SUCCESS) == ["r2"]
    assert await store.runs.list("t2") == []


@pytest.mark.req("RUN-1", "TASK-19")
async def test_a_run_is_its_owner_s_while_that_says_it_lives(store: Store, clock: FakeClock) -> None:
    for name in ("r1", "r2", "r3"):
        await store.runs.create(new_run(name, clock), exclusive=False, lease_seconds=10)
    await store.runs.transition("r3", expected=ACTIVE, to=RunStatus.SUCCESS)
    clock.move(9)

    kept = await store.runs.heartbeat("replica-1", ["r1", "r3", "unknown"], 10)
    assert kept == {"r1"}
    assert await store.runs.heartbeat("replica-2", ["r1"], 10) == frozenset()
    assert await store.runs.heartbeat("replica-1", [], 10) == frozenset()
    clock.move(1)
    taken = await store.runs.take_over("replica-2", lease_seconds=10)

    assert [(run.run_id, run.owner, run.status) for run in taken] == [("r2", "replica-2", RunStatus.PENDING)]
    assert await store.runs.take_over("replica-3", lease_seconds=10) == []
    assert await store.runs.heartbeat("replica-1", ["r1", "r2"], 10) == {"r1"}
    clock.move(10)
    assert {run.run_id for run in await store.runs.take_over("replica-3", lease_seconds=10, limit=5)} == {
        "r1",
        "r2",
    }


@pytest.mark.req("RUN-1", "TASK-19")
async def test_a_lapsed_run_is_taken_over_by_one_replica(store: Store, clock: FakeClock) -> None:
    for number in range(10):
        await store.runs.create(new_run(f"r{number}", clock), exclusive=False, lease_seconds=1)
    clock.move(1)

    taken = await asyncio.gather(
        *(store.runs.take_over(f"heir-{n}", lease_seconds=60, limit=4) for n in range(5))
    )

    ids = [run.run_id for batch in taken for run in batch]
    assert len(ids) == len(set(ids))
    rest = await store.runs.take_over("last", lease_seconds=60)
    assert len(ids) + len(rest) == 10


@pytest.mark.req("RUN-5")
async def test_only_an_ended_run_is_deleted_with_its_events(store: Store, clock: FakeClock) -> None:
    await store.runs.create(new_run("r1", clock), exclusive=True)
    await store.events.append("t1", event_type="a", run_id="r1")
    await store.events.append("t1", event_type="b")
    assert not await store.runs.delete("r1")
    await store.runs.transition("r1", expected=ACTIVE, to=RunStatus.SUCCESS)

    assert await store.runs.delete("r1")

    assert await store.runs.get("r1") is None
    assert [event.event_type for event in await store.events.list("t1")] == ["b"]
    assert not await store.runs.delete("r1")


@pytest.mark.req("RUN-5")
async def test_a_deleted_thread_takes_its_runs_and_events_along(store: Store, clock: FakeClock) -> None:
    await store.runs.create(new_run("r1", clock), exclusive=True)
    await store.events.append("t1", event_type="a", run_id="r1")

    assert await store.threads.delete("t1")
    assert not await store.threads.delete("t1")

    assert await store.runs.get("r1") is None
    assert await store.events.list("t1") == []
    assert not await store.runs.transition("r1", expected=ACTIVE, to=RunStatus.SUCCESS)
    _, made = await store.threads.create("t1", "alice", {})
    assert made
    event = await store.events.append("t1", event_type="first again")
    assert event is not None
    assert event.seq == 1


@pytest.mark.req("RUN-5")
async def test_ends_beginnings_and_deletion_at_once_leave_a_consistent_thread(
    store: Store, clock: FakeClock
) -> None:
    for number in range(8):
        await store.runs.create(new_run(f"r{number}", clock), exclusive=False)

    await asyncio.gather(
        *(store.runs.transition(f"r{n}", expected=ACTIVE, to=RunStatus.SUCCESS) for n in range(8)),
        *(store.events.append("t1", event_type="x") for _ in range(8)),
        store.runs.take_over("replica-2", lease_seconds=5),
    )

    assert await thread_status(store) == "idle"
    assert len(await store.events.list("t1")) == 8


@pytest.mark.req("RUN-5")
async def test_at_most_one_run_of_a_thread_begins_and_only_by_its_owner(
    store: Store, clock: FakeClock
) -> None:
    made = [new_run(f"r{number}", clock) for number in range(4)]
    for run in made:
        await store.runs.create(run, exclusive=False)
    assert not await store.runs.begin("r0", "replica-2")

    landed = await asyncio.gather(*(store.runs.begin(run.run_id, "replica-1") for run in made))

    assert sorted(landed) == [False, False, False, True]
    first, other = made[landed.index(True)], made[landed.index(False)]
    assert not await store.runs.begin(first.run_id, "replica-1")
    await store.runs.transition(first.run_id, expected=ACTIVE, to=RunStatus.SUCCESS)
    assert await store.runs.begin(other.run_id, "replica-1")
    assert not await store.runs.begin("missing", "replica-1")
    assert await thread_status(store) == "busy"
