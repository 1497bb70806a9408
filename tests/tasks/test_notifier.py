"""Notifications: delivered or dead-lettered, once, whatever sinks do (case C63)."""

import asyncio
from typing import Any

import pytest
from support.clock import FakeClock, eventually
from support.fake_driver import asking, completed, hang, hang_stubbornly, working
from support.faulty_tasks import FaultyTasks
from support.rig import FakeSink, Rig

from moorage.contract import AttentionKind, DeliveryOutcome, DeliveryState, StoreUnavailable
from moorage.settings import TaskSettings

DELIVERED, PENDING, BUSY = DeliveryState.DELIVERED, DeliveryState.PENDING, DeliveryState.BUSY
FAILED, GONE = DeliveryState.FAILED, DeliveryState.GONE


async def finished_task(rig: Rig, result: Any = "done") -> str:
    rig.driver.on_submit = [completed(result)]
    return (await rig.submit()).task_id


@pytest.mark.req("NOTE-1", "NOTE-2", "TASK-19")
async def test_an_event_is_delivered_once_under_a_stable_id(rig: Rig) -> None:
    task_id = await finished_task(rig, {"files": 3})

    async with rig.running(notifier=True):
        row = await rig.until(task_id, lambda task: task.notification_status == "delivered")
        await rig.clock.advance(1_000)

    (note,) = rig.sink.seen
    assert note.delivery_id == f"{task_id}:1:0"
    assert (note.kind, note.status, note.result) == (AttentionKind.TERMINAL, "completed", {"files": 3})
    assert (note.user_id, note.thread_id, note.assistant_id) == ("alice", "t1", "direct")
    assert row.notification_failure_count == 0


@pytest.mark.req("NOTE-2", "NOTE-3")
async def test_a_delivery_under_way_or_a_busy_thread_is_asked_again_without_counting(rig: Rig) -> None:
    rig.sink.script = [BUSY, BUSY, BUSY, BUSY, BUSY, BUSY, PENDING, PENDING, DELIVERED]
    task_id = await finished_task(rig)

    async with rig.running(notifier=True):
        row = await rig.until(task_id, lambda task: task.notification_status == "delivered")

    assert set(rig.sink.ids) == {f"{task_id}:1:0"}
    assert len(rig.sink.seen) == 9
    assert (row.notification_attempt, row.notification_failure_count) == (0, 0)
    assert rig.clock.monotonic() > 0, "it waited in between"


@pytest.mark.req("NOTE-3")
@pytest.mark.parametrize(
    ("asked", "wait"), [(40, 40), (1e9, 86_400), (float("nan"), 2), (-1, 2), (float("inf"), 2), ("7", 2)]
)
async def test_a_sinks_wish_to_wait_is_granted_where_it_makes_sense(
    rig: Rig, asked: Any, wait: float
) -> None:
    rig.sink.script = [DeliveryOutcome(BUSY, retry_after_seconds=asked)]
    await finished_task(rig)

    async with rig.running(notifier=True, scheduler=False):
        await eventually(lambda: rig.sink.seen)
    due = await rig.repository.next_notification_at()

    assert due is not None
    assert (due - rig.clock.now()).total_seconds() == pytest.approx(wait)


@pytest.mark.req("NOTE-2", "NOTE-3")
async def test_recorded_failures_change_the_attempt_back_off_and_end_after_five(
    repository: FaultyTasks, clock: FakeClock
) -> None:
    rig = Rig(repository.as_repository, clock, settings=TaskSettings(backoff_cap_seconds=20))
    rig.sink.script = [DeliveryOutcome(FAILED, "the run failed")]
    task_id = await finished_task(rig)

    async with rig.running(notifier=True):
        row = await rig.until(task_id, lambda task: task.notification_status == "dead_letter")
        await rig.clock.advance(1_000)

    assert rig.sink.ids == [f"{task_id}:1:{attempt}" for attempt in range(5)]
    assert (row.notification_failure_count, row.notification_error) == (5, "the run failed")
    assert clock.monotonic() - 1_000 == pytest.approx(5 + 10 + 20 + 20, abs=1)


@pytest.mark.req("NOTE-2", "NOTE-3", "PLUG-7")
@pytest.mark.parametrize(
    "step",
    [
        ConnectionError("lost after sending"),
        hang,
        hang_stubbornly,
        asyncio.CancelledError(),
        lambda: _answer(None),
        lambda: _answer("delivered"),
    ],
)
async def test_where_the_sink_may_have_taken_it_the_failure_counts_but_the_id_stays(
    rig: Rig, step: Any
) -> None:
    rig.sink.script = [step, step, DELIVERED]
    task_id = await finished_task(rig)

    async with rig.running(notifier=True):
        row = await rig.until(task_id, lambda task: task.notification_failure_count == 2)
        assert row.notification_error is not None
        assert "'thread'" in row.notification_error
        row = await rig.until(task_id, lambda task: task.notification_status == "delivered")

    assert rig.sink.ids == [f"{task_id}:1:0"] * 3
    assert row.notification_failure_count == 2


@pytest.mark.req("NOTE-3")
async def test_a_sink_that_always_raises_ends_in_dead_letter_too(rig: Rig) -> None:
    rig.sink.script = [RuntimeError("broken")]
    task_id = await finished_task(rig)

    async with rig.running(notifier=True):
        row = await rig.until(task_id, lambda task: task.notification_status == "dead_letter")

    assert (len(rig.sink.seen), row.notification_failure_count) == (5, 5)


@pytest.mark.req("NOTE-3")
async def test_a_target_that_is_gone_dead_letters_at_once(rig: Rig) -> None:
    rig.sink.script = [DeliveryOutcome(GONE, "the thread was deleted")]
    task_id = await finished_task(rig)

    async with rig.running(notifier=True):
        row = await rig.until(task_id, lambda task: task.notification_status == "dead_letter")

    assert (len(rig.sink.seen), row.notification_error) == (1, "the thread was deleted")


@pytest.mark.req("NOTE-1", "NOTE-3")
async def test_a_newer_event_replaces_an_undelivered_one_and_starts_afresh(rig: Rig) -> None:
    rig.sink.script = [FAILED, FAILED, DELIVERED]
    rig.driver.on_poll["*"] = [asking({"question": "which?"}), completed("done")]
    task_id = (await rig.submit()).task_id
    rig.sink.script = [FAILED, BUSY, BUSY]

    async with rig.running(notifier=True):
        await rig.until(task_id, lambda task: task.notification_failure_count == 1)
        rig.sink.script = [DeliveryOutcome(BUSY, retry_after_seconds=60)]
        await rig.until(task_id, lambda task: task.status.terminal)
        rig.sink.script = [DELIVERED]
        row = await rig.until(task_id, lambda task: task.notification_status == "delivered")

    assert rig.sink.ids[-1] == f"{task_id}:2:0"
    assert rig.sink.seen[-1].status == "completed"
    assert (row.event_version, row.notification_failure_count) == (2, 0)


@pytest.mark.req("NOTE-1")
async def test_an_old_delivery_that_ends_late_does_not_mark_the_newer_event_delivered(rig: Rig) -> None:
    taken = asyncio.Event()

    async def slow() -> DeliveryOutcome:
        await taken.wait()
        return DeliveryOutcome(DELIVERED)

    rig.sink.script = [slow, DELIVERED]
    rig.driver.on_poll["*"] = [asking({"question": "which?"}), completed("done")]
    task_id = (await rig.submit()).task_id

    async with rig.running(notifier=True):
        await rig.until(task_id, lambda task: task.event_version == 2)
        taken.set()
        await rig.until(task_id, lambda task: task.notification_status == "delivered")

    assert f"{task_id}:2:0" in rig.sink.ids


@pytest.mark.req("NOTE-1", "TASK-13")
async def test_the_same_event_is_not_sent_twice(rig: Rig) -> None:
    question = asking({"question": "which?"})
    rig.driver.on_poll["*"] = [question, question, working(), hang]
    await rig.submit()

    async with rig.running(notifier=True):
        await rig.clock.drive(lambda: len(rig.driver.polls) == 4)

    assert len(rig.sink.seen) == 1


@pytest.mark.req("NOTE-2", "TASK-11")
async def test_a_stop_during_a_delivery_counts_nothing_and_the_next_replica_asks_with_the_same_id(
    rig: Rig, repository: FaultyTasks
) -> None:
    rig.sink.script = [hang]
    task_id = await finished_task(rig)
    async with rig.running(notifier=True):
        await eventually(lambda: rig.sink.seen)
    stopped = await rig.task(task_id)

    heir = Rig(repository.as_repository, rig.clock, owner="replica-2")
    async with heir.running(notifier=True):
        await heir.until(task_id, lambda task: task.notification_status == "delivered")

    assert (stopped.notification_failure_count, stopped.notification_attempt) == (0, 0)
    assert rig.sink.ids == heir.sink.ids
    assert rig.clock.monotonic() < 1, "the lease went back, nobody waited for its end"


@pytest.mark.req("NOTE-2", "TASK-19")
async def test_a_crash_between_delivery_and_bookkeeping_repeats_the_same_id(
    rig: Rig, repository: FaultyTasks
) -> None:
    task_id = await finished_task(rig)
    # What a replica that was killed after its sink had accepted leaves behind.
    (claim,) = await repository.claim_notifications("dead", limit=5, lease_seconds=120)

    async with rig.running(notifier=True):
        await rig.until(task_id, lambda task: task.notification_status == "delivered")

    assert rig.sink.ids == [f"{task_id}:{claim.version}:{claim.attempt}"]
    assert rig.clock.monotonic() <= 121


@pytest.mark.req("PLUG-7", "NOTE-3")
async def test_a_hanging_delivery_holds_no_other_up(rig: Rig) -> None:
    stuck = await finished_task(rig)
    rig.sink.script = [hang, DELIVERED]

    async with rig.running(notifier=True):
        await eventually(lambda: rig.sink.seen)
        other = await finished_task(rig)
        await rig.until(other, lambda task: task.notification_status == "delivered")

    assert rig.clock.monotonic() < 5
    assert (await rig.task(stuck)).notification_status == "pending"


@pytest.mark.req("NOTE-4", "PLUG-7")
async def test_other_sinks_are_told_once_and_change_nothing(
    repository: FaultyTasks, clock: FakeClock
) -> None:
    bad, flaky, fine = FakeSink(RuntimeError("broken")), FakeSink(FAILED, BUSY, DELIVERED), FakeSink()
    rig = Rig(repository.as_repository, clock, others={"bad": bad, "flaky": flaky, "fine": fine})
    rig.sink.script = [PENDING, PENDING, DELIVERED]
    task_id = await finished_task(rig)

    async with rig.running(notifier=True):
        row = await rig.until(task_id, lambda task: task.notification_status == "delivered")
        await rig.clock.drive(lambda: len(bad.seen) == 5)
        await rig.clock.advance(1_000)

    assert fine.ids == [f"{task_id}:1:0"]
    assert flaky.ids == [f"{task_id}:1:0"] * 3
    assert len(bad.seen) == 5
    assert (row.notification_failure_count, row.notification_error) == (0, None)


@pytest.mark.req("TASK-10")
async def test_the_notifier_survives_a_store_in_trouble(rig: Rig, repository: FaultyTasks) -> None:
    task_id = await finished_task(rig)
    repository.faults["claim_notifications"] = [StoreUnavailable("gone")]
    repository.faults["apply_notification"] = [StoreUnavailable("gone"), RuntimeError("bug")]

    async with rig.running(notifier=True):
        row = await rig.until(task_id, lambda task: task.notification_status == "delivered")

    assert row.notification_failure_count == 0
    assert len(rig.sink.seen) == 1, "the outcome was kept until the store took it"


@pytest.mark.req("TASK-10", "NOTE-2")
async def test_an_outcome_that_the_store_keeps_refusing_holds_no_other_up(
    rig: Rig, repository: FaultyTasks
) -> None:
    refused, fine = await finished_task(rig), await finished_task(rig)
    repository.faults["apply_notification"] = [ValueError("bug"), None, ValueError("bug"), ValueError("bug")]

    async with rig.running(notifier=True):
        for each in (refused, fine):
            await rig.until(each, lambda task: task.notification_status == "delivered")

    assert sorted(set(rig.sink.ids)) == sorted(f"{each}:1:0" for each in (refused, fine))
    assert len(rig.sink.ids) == 3, "the refused one was delivered again, under the same id"


@pytest.mark.req("NOTE-4")
async def test_a_primary_sink_that_is_not_installed_fails_the_start(rig: Rig) -> None:
    with pytest.raises(ValueError, match=r"'pager'.*thread"):
        type(rig.notifier)(
            repository=rig.repository,
            sinks={"thread": rig.sink},
            primary="pager",
            settings=rig.settings,
            clock=rig.clock,
            owner="replica-1",
        )


async def _answer(value: object) -> Any:
    return value
