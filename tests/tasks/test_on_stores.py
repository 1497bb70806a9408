"""The runtime on the real databases, in real time: what a fake repository could get wrong."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from support.clock import eventually
from support.fake_driver import FakeDriver, FakeRespondingDriver, asking, completed, working
from support.faulty_tasks import FaultyTasks
from support.rig import ALICE, CONTEXT, LiveRig

from moorage.clock import SystemClock
from moorage.contract import (
    NewTask,
    RemoteTaskConflict,
    Store,
    TaskHandle,
    TaskRef,
    TaskSnapshot,
    TransientDriverError,
)
from moorage.settings import TaskSettings

QUICK = TaskSettings(poll_interval_seconds=0.1, lease_seconds=4, backoff_cap_seconds=0.3)


def replica(store: Store, number: int = 1, **parts: Any) -> LiveRig:
    return LiveRig(store.tasks, SystemClock(), owner=f"replica-{number}", settings=QUICK, **parts)


@pytest.fixture
async def rig(store: Store) -> AsyncIterator[LiveRig]:
    rig = replica(store, driver=FakeRespondingDriver())
    yield rig
    await rig.service.aclose()


@pytest.mark.req("TASK-3", "TASK-9", "TASK-13", "NOTE-1", "TASK-6")
async def test_a_task_goes_its_way_from_submit_to_its_one_notification(rig: LiveRig) -> None:
    rig.driver.on_poll["*"] = [working(), working(), completed({"files": 3}, result_artifact={"uri": "a:b"})]
    submitted = await rig.submit()

    async with rig.running(notifier=True):
        row = await rig.until(submitted.task_id, lambda task: task.notification_status == "delivered")

    assert (row.status, row.result, row.result_artifact) == ("completed", {"files": 3}, {"uri": "a:b"})
    assert len(rig.driver.polls) == 3
    assert rig.sink.ids == [f"{submitted.task_id}:1:{row.notification_attempt}"]
    assert row.finished_at is not None
    assert row.finished_at.utcoffset() is not None
    assert row.created_at <= row.finished_at


@pytest.mark.req("TASK-5", "TASK-22")
async def test_a_remote_task_belongs_to_one_row(rig: LiveRig) -> None:
    async def same(_: object) -> TaskHandle:
        return TaskHandle("same")

    rig.driver.on_submit = [same]
    first = await rig.submit()

    with pytest.raises(RemoteTaskConflict) as raised:
        await rig.submit()
    other_server = await rig.submit(server="elsewhere")

    assert raised.value.existing_task_id == first.task_id
    assert rig.driver.cancels == []
    rows = await FaultyTasks(rig.repository).rows()
    assert {row.task_id for row in rows} == {first.task_id, other_server.task_id}


@pytest.mark.req("TASK-4", "TASK-22")
async def test_a_compensated_submission_shows_as_failed_with_its_reason(store: Store) -> None:
    faulty = FaultyTasks(store.tasks)
    rig = LiveRig(faulty.as_repository, SystemClock(), settings=QUICK)
    faulty.faults["record_handle"] = [RuntimeError("disk full")]

    with pytest.raises(RuntimeError, match="disk full"):
        await rig.submit()

    row = await faulty.only_row()
    assert rig.driver.cancels == ["r1"]
    assert (row.status, row.error_code, row.notification_status) == (
        "failed",
        "submission_cancelled",
        "pending",
    )


@pytest.mark.req("TASK-22")
async def test_an_intent_whose_submitter_died_fails_as_unknown(rig: LiveRig) -> None:
    await rig.repository.create_intent(
        NewTask(
            task_id="lost",
            task_name="report",
            user_id="alice",
            thread_id="t1",
            run_id=None,
            assistant_id=None,
            server_name="files",
            driver="fake",
            binding={},
            lease_seconds=0.5,
        )
    )
    async with rig.running(notifier=True):
        row = await rig.until("lost", lambda task: task.notification_status == "delivered")

    assert (row.status, row.error_code) == ("failed", "submission_unknown")
    assert rig.driver.submits == []


@pytest.mark.req("TASK-17", "TASK-8")
async def test_a_cancel_is_retried_until_the_remote_is_over(rig: LiveRig) -> None:
    rig.driver.on_cancel["*"] = [TransientDriverError("no route"), working()]
    rig.driver.on_poll["*"] = [working(), working(), working(), completed("too late")]
    submitted = await rig.submit()

    async with rig.running():
        await rig.service.cancel(ALICE, submitted.task_id)
        row = await rig.until(submitted.task_id, lambda task: task.status.terminal)

    assert row.result == "too late"
    assert row.cancel_requested_at is not None
    assert 1 <= len(rig.driver.cancels) <= 2


@pytest.mark.req("TASK-8", "TASK-13")
async def test_degraded_tracking_comes_and_goes(rig: LiveRig) -> None:
    error = TransientDriverError("no route")
    rig.driver.on_poll["*"] = [error, error, error, working()]
    submitted = await rig.submit()

    async with rig.running():
        degraded = await rig.until(submitted.task_id, lambda task: task.tracking_degraded)
        healed = await rig.until(submitted.task_id, lambda task: not task.tracking_degraded)

    assert (degraded.last_poll_error, degraded.event_version) == ("no route", 1)
    assert (healed.last_poll_error, healed.poll_error_count, healed.event_version) == (None, 0, 1)


@pytest.mark.req("TASK-10", "BOUND-4")
async def test_a_nul_or_a_lone_surrogate_breaks_no_batch(rig: LiveRig) -> None:
    odd = {"text": "a\0b\ud800c", "key\0": "\udfff"}
    rig.driver.on_poll["r1"] = [completed(odd)]
    rig.driver.on_poll["r2"] = [TransientDriverError("a\0b\ud800c")]
    rig.driver.on_poll["*"] = [completed("fine")]
    tasks = [await rig.submit() for _ in range(5)]

    async with rig.running():
        for each in (tasks[0], *tasks[2:]):
            await rig.until(each.task_id, lambda task: task.status.terminal)
        shaky = await rig.until(tasks[1].task_id, lambda task: task.last_poll_error)

    assert (await rig.task(tasks[0].task_id)).result == odd
    assert shaky.last_poll_error == "a\ufffdb\ufffdc"


@pytest.mark.req("TASK-12", "TASK-13", "TASK-16")
async def test_a_question_is_answered_once_and_the_task_goes_on(rig: LiveRig) -> None:
    driver = rig.driver
    assert isinstance(driver, FakeRespondingDriver)
    driver.on_submit = [asking({"question": "How many?", "schema": {"type": "integer"}})]
    driver.on_poll["*"] = [completed("thanks")]
    submitted = await rig.submit()

    async with rig.running():
        answers = await asyncio.gather(
            *(rig.service.respond(ALICE, submitted.task_id, "a1", number) for number in (1, 2, 3))
        )
        row = await rig.until(submitted.task_id, lambda task: task.status.terminal)

    assert len(driver.answers) == 1
    assert {answer.response for answer in answers} == {driver.answers[0][1].response}
    assert row.result == "thanks"


@pytest.mark.req("TASK-19", "TASK-10")
async def test_a_killed_replicas_tasks_are_taken_over_within_one_lease(rig: LiveRig) -> None:
    submitted = await rig.submit()
    claims = await rig.repository.claim("killed", limit=10, lease_seconds=QUICK.lease_seconds)
    rig.driver.on_poll["*"] = [completed("taken over")]
    loop = asyncio.get_running_loop()
    began = loop.time()

    async with rig.running():
        row = await rig.until(submitted.task_id, lambda task: task.status.terminal)

    assert [claim.task.task_id for claim in claims] == [submitted.task_id]
    assert row.result == "taken over"
    assert loop.time() - began < QUICK.lease_seconds + 2


@pytest.mark.req("TASK-19", "TASK-6", "TASK-21")
async def test_replicas_share_many_tasks_and_never_poll_one_at_the_same_time(store: Store) -> None:
    driver = FakeDriver()
    under_way: set[str] = set()
    at_the_same_time: list[str] = []
    polls: dict[str, int] = {}

    async def careful(ref: TaskRef) -> TaskSnapshot:
        if ref.remote_id in under_way:
            at_the_same_time.append(ref.remote_id)
        under_way.add(ref.remote_id)
        await asyncio.sleep(0.002)
        under_way.discard(ref.remote_id)
        polls[ref.remote_id] = polls.get(ref.remote_id, 0) + 1
        return completed("done") if polls[ref.remote_id] == 3 else working()

    driver.on_poll["*"] = [careful]
    replicas = [replica(store, number, driver=driver) for number in (1, 2, 3)]
    submitted = [await replicas[0].submit() for _ in range(100)]

    async with AsyncExitStack() as stack:
        for each in replicas:
            await stack.enter_async_context(each.running(notifier=True))
        for task in submitted:
            await replicas[0].until(
                task.task_id, lambda row: row.notification_status == "delivered", within=30
            )

    assert at_the_same_time == []
    assert set(polls.values()) == {3}
    delivered = [delivery for each in replicas for delivery in each.sink.ids]
    assert len(delivered) == len(set(delivered)) == 100
    for each in replicas:
        await each.service.aclose()


@pytest.mark.req("TASK-19")
async def test_a_session_bound_task_stays_with_its_replica_while_it_lives(store: Store) -> None:
    driver = FakeDriver()
    holder, other = replica(store, 1, driver=driver), replica(store, 2, driver=driver)
    async with other.running():
        async with holder.running():
            submitted = await holder.submit(sticky=True)
            await eventually(lambda: len(driver.polls) >= 8)
            assert (await holder.task(submitted.task_id)).holder == "replica-1"
        await other.until(submitted.task_id, lambda task: task.holder == "replica-2")


@pytest.mark.req("TASK-21")
async def test_a_submission_is_polled_without_waiting_for_a_tick(store: Store) -> None:
    watched = FaultyTasks(store.tasks)
    settings = TaskSettings(poll_interval_seconds=60)
    rig = LiveRig(watched.as_repository, SystemClock(), settings=settings)
    loop = asyncio.get_running_loop()
    async with rig.running():
        await eventually(lambda: watched.calls["next_due_at"])
        began = loop.time()
        await rig.submit()
        await eventually(lambda: rig.driver.polls)
        assert loop.time() - began < 2


@pytest.mark.req("NOTE-3")
async def test_a_deleted_threads_notifications_are_dead_lettered(rig: LiveRig) -> None:
    rig.driver.on_submit = [completed("done")]
    submitted = await rig.submit()
    await rig.repository.delete_thread("alice", str(CONTEXT.thread_id))

    async with rig.running(notifier=True):
        row = await rig.until(submitted.task_id, lambda task: task.notification_status == "dead_letter")

    assert rig.sink.seen == []
    assert row.status == "completed"
