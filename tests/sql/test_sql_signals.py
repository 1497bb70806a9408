"""Signals between the repositories and whoever waits, across replicas (TASK-19)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
from support.clock import FakeClock, eventually
from support.postgres import PostgresServer
from support.stored_tasks import ASKING, COMPLETED, Tasks

from moorage.contract import AttentionKind, Store, StoreSignal
from moorage_drivers.sql.store import open_store

TASKS, NOTIFICATIONS = StoreSignal("tasks"), StoreSignal("notifications")
EVERYTHING = [TASKS, NOTIFICATIONS, StoreSignal("events")]


async def listening(url: str, heard: list[StoreSignal]) -> None:
    """PostgreSQL is listened to from a moment on; what was missed before is made up for by one of each."""
    if url.startswith("postgresql"):
        await eventually(lambda: set(EVERYTHING) <= set(heard))
    heard.clear()


@pytest.mark.req("TASK-19", "TASK-21")
async def test_this_process_hears_its_own_changes(store: Store, store_url: str, tasks: Tasks) -> None:
    heard: list[StoreSignal] = []
    await store.threads.create("t1", "alice", {})

    def take() -> set[StoreSignal]:
        taken = set(heard)
        heard.clear()
        return taken

    async with store.watch(heard.append):
        await listening(store_url, heard)
        await tasks.track("t1")
        assert take() == {TASKS}
        await tasks.repository.request_cancel("t1")
        assert take() == {TASKS}
        await tasks.repository.request_cancel("t1")
        assert take() == set()
        claim = await tasks.claim_one()
        await tasks.repository.release({"t1": claim.token})
        assert take() == {TASKS}
        claim = await tasks.claim_one()
        await tasks.apply(tasks.polled(claim, COMPLETED, attention=AttentionKind.TERMINAL))
        assert take() == {NOTIFICATIONS}
        await store.events.append("t1", event_type="x")
        assert take() == {StoreSignal("events", "t1")}
        await store.events.append("gone", event_type="x")
        await tasks.repository.heartbeat("replica-1", 10)
        assert take() == set()
    await tasks.finish("t2")
    assert take() == set()


@pytest.mark.req("TASK-16")
async def test_an_answer_and_a_failed_intent_are_told(store: Store, store_url: str, tasks: Tasks) -> None:
    await tasks.track("t1", outcome=ASKING, due_in=60)
    await tasks.repository.record_answer("t1", "a1", response_json="1")
    await tasks.intent("t2")
    heard: list[StoreSignal] = []

    async with store.watch(heard.append):
        await listening(store_url, heard)
        await tasks.repository.finish_answer("t1", "a1", state="sent")
        await tasks.repository.fail_intent("t2", None, error="x", error_code="x")

    assert heard[:2] == [TASKS, NOTIFICATIONS]


@pytest.mark.req("PLUG-7")
async def test_a_listener_that_raises_disturbs_nobody(store: Store, tasks: Tasks) -> None:
    heard: list[StoreSignal] = []

    def bad(signal: StoreSignal) -> None:
        raise RuntimeError("oops")

    async with store.watch(bad), store.watch(heard.append):
        await tasks.track("t1")

    assert TASKS in heard


@pytest.fixture
async def replicas(postgres: PostgresServer, clock: FakeClock) -> AsyncIterator[tuple[Store, Store]]:
    url = postgres.create()
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(open_store(url, clock, False))
        yield one, await stack.enter_async_context(open_store(url, clock, False))
    postgres.drop(url)


@pytest.mark.req("TASK-19", "NOTE-4")
async def test_other_replicas_hear_of_it_on_postgresql(
    replicas: tuple[Store, Store], clock: FakeClock
) -> None:
    one, two = replicas
    heard: list[StoreSignal] = []
    await one.threads.create("a thread", "alice", {})

    async with two.watch(heard.append):
        await listening("postgresql", heard)
        await Tasks(one.tasks, clock).track("t1")
        await eventually(lambda: TASKS in heard)
        await Tasks(one.tasks, clock).finish("t2")
        await asyncio.gather(*(one.events.append("a thread", event_type="x") for _ in range(20)))
        await eventually(lambda: {NOTIFICATIONS, StoreSignal("events", "a thread")} <= set(heard))
        # Gathered for a moment: not a message for every change.
        assert len(heard) < 15


@pytest.mark.req("TASK-19")
async def test_a_restart_of_the_database_costs_no_signal_for_good(
    replicas: tuple[Store, Store], clock: FakeClock, postgres: PostgresServer
) -> None:
    one, two = replicas
    heard: list[StoreSignal] = []

    async with two.watch(heard.append):
        await listening("postgresql", heard)
        await asyncio.to_thread(postgres.restart)
        await eventually(lambda: set(EVERYTHING) <= set(heard), within=20)
        heard.clear()
        await Tasks(one.tasks, clock).track("t1")
        await eventually(lambda: TASKS in heard)


@pytest.mark.req("TASK-11", "TASK-19")
async def test_what_a_closing_replica_told_last_is_heard(postgres: PostgresServer, clock: FakeClock) -> None:
    url = postgres.create()
    heard: list[StoreSignal] = []
    async with open_store(url, clock, False) as two, two.watch(heard.append):
        async with open_store(url, clock, False) as one:
            await listening(url, heard)
            await one.tasks.heartbeat("replica-1", 0)
        await eventually(lambda: TASKS in heard)
    postgres.drop(url)
