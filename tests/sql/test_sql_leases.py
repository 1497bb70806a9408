"""Claims are leases that a stale worker cannot write under (TASK-6, C61)."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta, timezone

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool
from support.clock import FakeClock
from support.postgres import PostgresServer
from support.stored_tasks import COMPLETED, WORKING, Tasks, new_task

from moorage.clock import SystemClock
from moorage.contract import Store, TaskStatus
from moorage_drivers.sql.store import open_store
from moorage_drivers.sql.urls import parse_url


@pytest.mark.req("TASK-6", "C61")
async def test_a_claim_is_exclusive_until_it_expires(tasks: Tasks) -> None:
    await tasks.track("t1")

    claim = await tasks.claim_one(lease_seconds=10)

    assert claim.lease_expires_at == tasks.in_seconds(10)
    assert await tasks.claim() == []
    tasks.clock.move(9.999)
    assert await tasks.claim() == []
    tasks.clock.move(0.001)
    again = await tasks.claim_one()
    assert again.token != claim.token


@pytest.mark.req("TASK-6", "C61")
async def test_a_stale_worker_writes_nothing_though_it_has_the_same_owner_id(tasks: Tasks) -> None:
    await tasks.track("t1")
    stale = await tasks.claim_one(lease_seconds=10)
    tasks.clock.move(11)
    fresh = await tasks.claim_one(lease_seconds=10)

    assert await tasks.apply(tasks.polled(stale, COMPLETED)) == set()
    assert await tasks.repository.release({"t1": stale.token}) == frozenset()

    assert (await tasks.get("t1")).status is TaskStatus.WORKING
    assert await tasks.claim() == []
    assert await tasks.apply(tasks.polled(fresh, COMPLETED)) == {"t1"}


@pytest.mark.req("TASK-6", "C61")
async def test_an_expired_lease_writes_nothing_though_nobody_else_has_claimed(tasks: Tasks) -> None:
    await tasks.track("t1")
    claim = await tasks.claim_one(lease_seconds=10)
    tasks.clock.move(10)

    assert await tasks.apply(tasks.polled(claim, COMPLETED)) == set()
    assert await tasks.repository.release({"t1": claim.token}) == frozenset()
    assert (await tasks.get("t1")).status is TaskStatus.WORKING


@pytest.mark.req("TASK-6")
async def test_an_applied_lease_is_used_up(tasks: Tasks) -> None:
    await tasks.track("t1")
    claim = await tasks.claim_one()

    assert await tasks.apply(tasks.polled(claim)) == {"t1"}
    assert await tasks.apply(tasks.polled(claim, COMPLETED)) == set()


@pytest.mark.req("TASK-11")
async def test_a_released_task_is_due_as_before_and_nothing_is_counted(tasks: Tasks) -> None:
    before = await tasks.track("t1")
    claim = await tasks.claim_one()

    assert await tasks.repository.release({"t1": claim.token, "t2": "unknown"}) == {"t1"}

    assert await tasks.get("t1") == before
    assert (await tasks.claim_one()).task == before


@pytest.mark.req("TASK-6", "C61")
async def test_moments_mean_the_same_in_every_offset(tasks: Tasks) -> None:
    east = timezone(timedelta(hours=8))
    token = await tasks.intent("t1")
    due = tasks.in_seconds(60)
    await tasks.repository.record_handle(
        "t1", token, remote_id="r", outcome=WORKING, next_poll_at=due.astimezone(east)
    )

    task = await tasks.get("t1")

    assert task.next_poll_at == due
    assert task.next_poll_at is not None
    assert task.next_poll_at.tzinfo is UTC
    tasks.clock.move(59)
    assert await tasks.claim() == []
    tasks.clock.move(1)
    claim = await tasks.claim_one()
    later = tasks.in_seconds(5).astimezone(timezone(timedelta(hours=-11, minutes=-30)))
    await tasks.apply(tasks.polled(claim, next_poll_at=later, polled_at=tasks.clock.now().astimezone(east)))
    task = await tasks.get("t1")
    assert (task.next_poll_at, task.last_polled_at) == (tasks.in_seconds(5), tasks.clock.now())


@pytest.mark.req("C61")
async def test_a_naive_moment_is_refused(tasks: Tasks) -> None:
    token = await tasks.intent("t1")

    with pytest.raises(ValueError, match="offset"):
        await tasks.repository.record_handle(
            "t1",
            token,
            remote_id="r",
            outcome=WORKING,
            next_poll_at=datetime(2030, 1, 1),  # noqa: DTZ001
        )


@pytest.mark.req("TASK-6", "C61")
async def test_workers_side_by_side_claim_every_row_once(
    tasks: Tasks, store_url: str, clock: FakeClock
) -> None:
    for number in range(50):
        await tasks.track(f"t{number}")

    async def work(owner: str) -> list[str]:
        mine: list[str] = []
        async with open_store(store_url, clock, False) as own:
            while claims := await own.tasks.claim(owner, limit=3, lease_seconds=60):
                mine += [claim.task.task_id for claim in claims]
        return mine

    both = await asyncio.gather(work("replica-1"), work("replica-2"))

    assert sorted(both[0] + both[1]) == sorted(f"t{number}" for number in range(50))


@pytest.mark.req("TASK-6")
async def test_the_longest_due_come_first_and_no_more_than_asked(tasks: Tasks) -> None:
    for number in range(5):
        await tasks.track(f"t{number}", due_in=10 - number)
    await tasks.track("later", due_in=500)
    tasks.clock.move(20)

    claims = await tasks.claim(3)

    assert [claim.task.task_id for claim in claims] == ["t4", "t3", "t2"]
    assert len({claim.token for claim in claims}) == 1
    rest = await tasks.claim()
    assert [claim.task.task_id for claim in rest] == ["t1", "t0"]
    assert rest[0].token != claims[0].token


@pytest.mark.req("TASK-24")
async def test_a_claim_can_be_narrowed_to_drivers(tasks: Tasks) -> None:
    await tasks.track("t1", driver="ordinary")
    await tasks.track("t2", driver="mcp-tasks")

    assert await tasks.claim(drivers=[]) == []
    assert [claim.task.task_id for claim in await tasks.claim(drivers=["mcp-tasks", "x"])] == ["t2"]
    assert [claim.task.task_id for claim in await tasks.claim()] == ["t1"]


@pytest.mark.req("TASK-19")
async def test_a_held_task_stays_with_its_replica_while_that_lives(tasks: Tasks) -> None:
    await tasks.track("t1", holder="replica-1")
    await tasks.repository.heartbeat("replica-1", 15)

    assert await tasks.claim(owner="replica-2") == []
    tasks.clock.move(10)
    await tasks.repository.heartbeat("replica-1", 15)
    tasks.clock.move(10)
    assert await tasks.claim(owner="replica-2") == []
    tasks.clock.move(5)
    taken = await tasks.claim_one(owner="replica-2", lease_seconds=1)

    assert taken.task.holder == "replica-2"
    assert (await tasks.get("t1")).holder == "replica-2"


@pytest.mark.req("TASK-19")
async def test_a_farewell_frees_what_a_replica_held(tasks: Tasks) -> None:
    await tasks.track("t1", holder="replica-1")
    await tasks.track("t2")
    await tasks.repository.heartbeat("replica-1", 15)
    await tasks.repository.heartbeat("replica-1", 0)

    claims = await tasks.claim(owner="replica-2")

    assert {claim.task.task_id: claim.task.holder for claim in claims} == {"t1": "replica-2", "t2": None}


@pytest.mark.req("TASK-19")
async def test_replicas_that_died_long_ago_are_forgotten(
    tasks: Tasks, store_url: str, clock: FakeClock
) -> None:
    await tasks.repository.heartbeat("dead", 10)
    await tasks.repository.heartbeat("polite", 10)
    await tasks.repository.heartbeat("polite", 0)
    clock.move(100_000)
    async with open_store(store_url, clock, False) as store:
        await store.tasks.heartbeat("alive", 10)

    engine = create_engine(parse_url(store_url).url, poolclass=NullPool)
    with engine.connect() as connection:
        known = connection.execute(text("SELECT replica_id FROM replicas")).scalars().all()
    engine.dispose()
    assert known == ["alive"]


@pytest.mark.req("TASK-21")
async def test_what_is_due_next_counts_leases_polls_and_cancels(tasks: Tasks) -> None:
    assert await tasks.repository.next_due_at() is None
    await tasks.track("t1", due_in=40)
    assert await tasks.repository.next_due_at() == tasks.in_seconds(40)
    await tasks.repository.request_cancel("t1")
    assert await tasks.repository.next_due_at() == tasks.clock.now()

    await tasks.claim_one(lease_seconds=25)

    assert await tasks.repository.next_due_at() == tasks.in_seconds(25)


@pytest.fixture
async def system_store(store_url: str) -> AsyncIterator[Store]:
    class WrongClock(SystemClock):
        def now(self) -> datetime:
            return super().now() + timedelta(hours=1)

    async with open_store(store_url, WrongClock(), False) as store:
        yield store


@pytest.mark.req("TASK-6", "TASK-19")
@pytest.mark.parametrize("store_url", ["postgresql"], indirect=True)
async def test_on_postgresql_leases_go_by_the_database_s_clock(system_store: Store) -> None:
    tasks = system_store.tasks
    token = await tasks.create_intent(new_task("t1"))
    await tasks.record_handle("t1", token, remote_id="r", outcome=WORKING, next_poll_at=datetime.now(UTC))

    (claim,) = await tasks.claim("replica-1", limit=1, lease_seconds=60)

    wrong_by = claim.lease_expires_at - datetime.now(UTC) - timedelta(seconds=60)
    assert abs(wrong_by) < timedelta(seconds=20)


_CLAIMER = """
import asyncio, sys
from moorage.clock import SystemClock
from moorage_drivers.sql.store import open_store
from moorage_drivers.sql.urls import parse_url

async def main():
    async with open_store(sys.argv[1], SystemClock(), False) as store:
        claims = await store.tasks.claim("victim", limit=10, lease_seconds=1.5)
        print(len(claims), flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.mark.req("TASK-6", "TASK-10", "TASK-19")
async def test_the_work_of_a_killed_claimer_is_taken_over_within_its_lease(store_url: str) -> None:
    async with open_store(store_url, SystemClock(), False) as store:
        token = await store.tasks.create_intent(new_task("t1"))
        past = datetime.now(UTC) - timedelta(seconds=1)
        await store.tasks.record_handle("t1", token, remote_id="r", outcome=WORKING, next_poll_at=past)
        victim = subprocess.Popen([sys.executable, "-c", _CLAIMER, store_url], stdout=subprocess.PIPE)
        assert victim.stdout is not None
        assert await asyncio.to_thread(victim.stdout.readline) == b"1\n"
        os.kill(victim.pid, signal.SIGKILL)
        victim.wait()
        victim.stdout.close()

        claims = await store.tasks.claim("heir", limit=10, lease_seconds=30)
        deadline = asyncio.get_running_loop().time() + 10
        while not claims and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.05)
            claims = await store.tasks.claim("heir", limit=10, lease_seconds=30)

    assert [claim.task.task_id for claim in claims] == ["t1"]


@pytest.mark.req("TASK-10")
@pytest.mark.parametrize("store_url", ["postgresql"], indirect=True)
async def test_a_restart_of_the_database_is_survived(
    store_url: str, postgres: PostgresServer, clock: FakeClock
) -> None:
    async with open_store(store_url, clock, False) as store:
        tasks = Tasks(store.tasks, clock)
        await asyncio.gather(*(tasks.track(f"t{number}") for number in range(10)))
        await asyncio.to_thread(postgres.restart)

        await tasks.intent("t10")

        assert len(await store.tasks.claim("x", limit=20, lease_seconds=5)) == 10
