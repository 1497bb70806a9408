"""Several schedulers on one store (TASK-19)."""

import asyncio
import threading
from contextlib import AsyncExitStack

import pytest
from support.clock import FakeClock, eventually
from support.fake_driver import FakeDriver, completed, working
from support.faulty_tasks import FaultyTasks
from support.rig import Rig


@pytest.fixture
def driver() -> FakeDriver:
    return FakeDriver()


@pytest.fixture
def replicas(repository: FaultyTasks, clock: FakeClock, driver: FakeDriver) -> list[Rig]:
    return [
        Rig(repository.as_repository, clock, driver=driver, owner=f"replica-{number}") for number in (1, 2, 3)
    ]


@pytest.mark.req("TASK-19", "TASK-6")
async def test_replicas_share_the_work_and_poll_nothing_twice(
    replicas: list[Rig], driver: FakeDriver
) -> None:
    driver.on_poll["*"] = [completed("done")]
    submitted = [await replicas[0].submit() for _ in range(60)]

    async with AsyncExitStack() as stack:
        for replica in replicas:
            await stack.enter_async_context(replica.running(notifier=True))
        for each in submitted:
            await replicas[0].until(each.task_id, lambda task: task.notification_status == "delivered")

    assert len(driver.polls) == len(set(driver.polls)) == 60
    delivered = [delivery for replica in replicas for delivery in replica.sink.ids]
    assert len(delivered) == len(set(delivered)) == 60


@pytest.mark.req("TASK-19")
async def test_a_session_bound_task_stays_with_its_replica_until_the_heartbeat_lapses(
    replicas: list[Rig], driver: FakeDriver, clock: FakeClock
) -> None:
    holder, other, _ = replicas
    driver.on_poll["*"] = [working()]
    task_id = (await holder.submit(sticky=True)).task_id
    holder.scheduler._pool._size = 0  # alive, but too busy to poll

    async with other.running():
        async with holder.running():
            await eventually(lambda: holder.repository.calls["heartbeat"] >= 2)  # type: ignore[attr-defined]
            for _ in range(40):
                await clock.advance(10)
                await clock.settle()
            assert driver.polls == []
            assert (await other.task(task_id)).holder == "replica-1"
        stopped = clock.monotonic()
        row = await other.until(task_id, lambda task: task.holder == "replica-2")
        assert clock.monotonic() - stopped <= 5, "a farewell frees it at once"
        await eventually(lambda: driver.polls)

    assert row.status == "working"
    assert driver.refs[0].binding.sticky


@pytest.mark.req("TASK-19")
async def test_a_dead_replicas_session_bound_tasks_are_taken_over_within_a_lease(
    replicas: list[Rig], driver: FakeDriver, clock: FakeClock
) -> None:
    holder, other, _ = replicas
    driver.on_poll["*"] = [completed("taken over")]
    task_id = (await holder.submit(sticky=True)).task_id

    async with other.running():
        await other.until(task_id, lambda task: task.status.terminal)

    assert 100 < clock.monotonic() <= holder.settings.lease_seconds + 5


@pytest.mark.req("TASK-21", "TOOL-6")
async def test_a_wake_up_may_come_from_any_thread(replicas: list[Rig], driver: FakeDriver) -> None:
    rig = replicas[0]
    async with rig.running():
        await eventually(lambda: rig.clock.sleeping)
        await replicas[1].submit()
        thread = threading.Thread(target=rig.scheduler.wake)
        thread.start()
        await eventually(lambda: driver.polls)
        await asyncio.to_thread(thread.join)

    assert rig.clock.monotonic() == 0


async def test_a_wake_up_before_the_start_or_after_the_stop_does_no_harm(replicas: list[Rig]) -> None:
    rig = replicas[0]
    rig.scheduler.wake()
    async with rig.running():
        pass
    rig.scheduler.wake()
    rig.notifier.wake()
