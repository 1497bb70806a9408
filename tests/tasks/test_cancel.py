"""Cancelling: recorded first, performed by the poller, over when the remote says so (TASK-17, TASK-20)."""

import asyncio
from typing import Any

import pytest
from support.clock import eventually
from support.fake_driver import cancelled, completed, hang, hang_stubbornly, working
from support.faulty_tasks import FaultyTasks
from support.rig import ALICE, CONTEXT, Rig

from moorage.contract import (
    AmbiguousName,
    CallContext,
    NotFound,
    NotSupported,
    Principal,
    ProtocolViolation,
    TaskFilter,
    TaskSnapshot,
    TransientDriverError,
)

BOB = Principal("bob")
ADMIN = Principal("root", frozenset({"admin"}))


@pytest.mark.req("TASK-17")
async def test_a_cancel_is_recorded_first_and_performed_by_the_poller(rig: Rig) -> None:
    submitted = await rig.submit()

    row = await rig.service.cancel(ALICE, submitted.task_id)
    assert (row.status, rig.driver.cancels) == ("working", [])
    assert row.cancel_requested_at is not None

    async with rig.running():
        row = await rig.until(submitted.task_id, lambda task: task.status.terminal)
    assert (row.status, rig.driver.cancels) == ("cancelled", ["r1"])
    assert (row.cancel_attempt_count, row.last_cancel_error, row.event_kind) == (1, None, "terminal")


@pytest.mark.req("TASK-17", "TASK-21")
async def test_a_cancel_is_performed_without_waiting_for_the_next_poll(rig: Rig) -> None:
    rig.driver.on_poll["*"] = [working(poll_after_seconds=3_600)]
    submitted = await rig.submit()

    async with rig.running():
        await rig.until(submitted.task_id, lambda task: task.last_polled_at)
        await eventually(lambda: rig.clock.sleeping >= 2)
        before = rig.clock.monotonic()
        await rig.service.cancel(ALICE, submitted.task_id)
        await eventually(lambda: rig.driver.cancels)

    assert rig.clock.monotonic() == before


@pytest.mark.req("TASK-17")
async def test_of_two_terminal_replies_at_once_the_polls_counts(rig: Rig) -> None:
    gate = asyncio.Event()

    async def late(reply: TaskSnapshot) -> TaskSnapshot:
        await gate.wait()
        return reply

    rig.driver.on_poll["*"] = [lambda ref: late(completed("made it"))]
    rig.driver.on_cancel["*"] = [lambda ref: late(cancelled())]
    submitted = await rig.submit()
    await rig.service.cancel(ALICE, submitted.task_id)

    async with rig.running():
        await eventually(lambda: rig.driver.under_way == 2)
        gate.set()
        row = await rig.until(submitted.task_id, lambda task: task.status.terminal)

    assert (row.status, row.result) == ("completed", "made it")


@pytest.mark.req("TASK-17", "TASK-8")
async def test_a_poll_error_is_recorded_in_time_while_a_cancel_hangs(rig: Rig) -> None:
    rig.driver.on_cancel["*"] = [hang]
    rig.driver.on_poll["*"] = [TransientDriverError("no route")]
    submitted = await rig.submit()
    await rig.service.cancel(ALICE, submitted.task_id)

    async with rig.running():
        row = await rig.until(submitted.task_id, lambda task: task.poll_error_count)
        assert rig.clock.monotonic() <= 6
        assert row.last_poll_error == "no route"


@pytest.mark.req("TASK-17")
async def test_repeating_a_request_and_cancelling_what_is_over_change_nothing(rig: Rig) -> None:
    submitted = await rig.submit()
    first = await rig.service.cancel(ALICE, submitted.task_id)
    await rig.clock.advance(3)
    assert await rig.service.cancel(ALICE, submitted.task_id) == first

    async with rig.running():
        over = await rig.until(submitted.task_id, lambda task: task.status.terminal)
        assert await rig.service.cancel(ALICE, submitted.task_id) == over
        await rig.clock.advance(1_000)
    assert rig.driver.cancels == ["r1"]


@pytest.mark.req("TASK-17", "TASK-8")
async def test_a_failing_cancel_is_retried_and_holds_up_no_poll(rig: Rig) -> None:
    rig.driver.on_cancel["*"] = [TransientDriverError("no route")]
    rig.driver.on_poll["*"] = [working()]
    submitted = await rig.submit()
    await rig.service.cancel(ALICE, submitted.task_id)

    async with rig.running():
        row = await rig.until(submitted.task_id, lambda task: task.cancel_attempt_count == 4)

    # Retries after 5, 10 and 20 seconds; polls every 5 all the while.
    assert rig.clock.monotonic() == pytest.approx(35, abs=1)
    assert len(rig.driver.polls) >= 7
    assert (row.poll_error_count, row.last_cancel_error) == (0, "no route")


@pytest.mark.req("TASK-17")
@pytest.mark.parametrize("step", [hang, hang_stubbornly])
async def test_polls_go_on_while_a_cancel_hangs_and_what_they_find_counts(rig: Rig, step: Any) -> None:
    rig.driver.on_cancel["*"] = [step]
    rig.driver.on_poll["*"] = [working(), working(), working(), completed("made it")]
    submitted = await rig.submit()
    await rig.service.cancel(ALICE, submitted.task_id)

    async with rig.running():
        row = await rig.until(submitted.task_id, lambda task: task.status.terminal)

    assert (row.status, row.result) == ("completed", "made it")
    assert rig.clock.monotonic() == pytest.approx(15, abs=1), "as if there were no cancel"
    assert len(rig.driver.cancels) == 1


@pytest.mark.req("TASK-17", "TASK-13")
async def test_a_hanging_cancel_holds_up_no_notification(rig: Rig) -> None:
    rig.driver.on_cancel["*"] = [hang]
    rig.driver.on_poll["*"] = [
        working(),
        TaskSnapshot(status=working().status.INPUT_REQUIRED, input_required={"question": "sure?"}),
    ]
    submitted = await rig.submit()
    await rig.service.cancel(ALICE, submitted.task_id)

    async with rig.running(notifier=True):
        await rig.clock.drive(lambda: rig.sink.seen)

    assert rig.clock.monotonic() == pytest.approx(5, abs=1)
    assert rig.sink.seen[0].input_required == {"question": "sure?"}


@pytest.mark.req("TASK-17", "TASK-6")
async def test_a_cancel_that_never_answers_ends_before_its_lease_and_is_retried(rig: Rig) -> None:
    rig.driver.on_cancel["*"] = [hang, cancelled()]
    submitted = await rig.submit()
    await rig.service.cancel(ALICE, submitted.task_id)

    async with rig.running():
        row = await rig.until(submitted.task_id, lambda task: task.cancel_attempt_count == 1)
        assert rig.clock.monotonic() < rig.settings.lease_seconds
        assert row.last_cancel_error is not None
        assert "no answer" in row.last_cancel_error
        row = await rig.until(submitted.task_id, lambda task: task.status.terminal)

    assert (row.status, row.cancel_attempt_count, row.poll_error_count) == ("cancelled", 2, 0)


@pytest.mark.req("TASK-17")
async def test_after_a_mere_acknowledgement_polling_goes_on_until_the_remote_is_done(rig: Rig) -> None:
    rig.driver.on_cancel["*"] = [working()]
    rig.driver.on_poll["*"] = [working(), working(), completed("too late to stop")]
    submitted = await rig.submit()
    await rig.service.cancel(ALICE, submitted.task_id)

    async with rig.running():
        row = await rig.until(submitted.task_id, lambda task: task.status.terminal)

    assert (row.status, row.result) == ("completed", "too late to stop")
    assert (len(rig.driver.cancels), len(rig.driver.polls)) == (1, 3)


@pytest.mark.req("TASK-17")
async def test_a_request_that_comes_while_a_poll_is_in_flight_yields_to_its_terminal_reply(rig: Rig) -> None:
    may_answer = asyncio.Event()

    async def slow(_: object) -> TaskSnapshot:
        await may_answer.wait()
        return completed("done")

    rig.driver.on_poll["*"] = [slow]
    submitted = await rig.submit()

    async with rig.running():
        await eventually(lambda: rig.driver.polls)
        await rig.service.cancel(ALICE, submitted.task_id)
        may_answer.set()
        row = await rig.until(submitted.task_id, lambda task: task.status.terminal)

    assert (row.status, row.result, rig.driver.cancels) == ("completed", "done", [])


@pytest.mark.req("TASK-17", "TASK-9")
async def test_a_malformed_reply_to_a_cancel_is_a_permanent_failure(rig: Rig) -> None:
    rig.driver.on_cancel["*"] = [ProtocolViolation("no structured content")]
    submitted = await rig.submit()
    await rig.service.cancel(ALICE, submitted.task_id)

    async with rig.running():
        row = await rig.until(submitted.task_id, lambda task: task.status.terminal)

    assert row.error == "server 'files': no structured content"
    assert (row.status, row.error_code) == ("failed", "protocol_violation")


@pytest.mark.req("TASK-17")
async def test_a_binding_that_cannot_cancel_says_so_once_and_is_polled_on(rig: Rig) -> None:
    rig.driver.on_cancel["*"] = [NotSupported("this toolset has no cancel tool")]
    rig.driver.on_poll["*"] = [working(), working(), completed()]
    submitted = await rig.submit()
    await rig.service.cancel(ALICE, submitted.task_id)

    async with rig.running():
        row = await rig.until(submitted.task_id, lambda task: task.status.terminal)

    assert (row.status, len(rig.driver.cancels)) == ("completed", 1)
    assert row.last_cancel_error == "this toolset has no cancel tool"


@pytest.mark.req("TASK-17", "TASK-22")
async def test_a_task_cancelled_while_it_is_being_submitted_is_cancelled_once_it_is_tracked(
    rig: Rig, repository: FaultyTasks
) -> None:
    gate = asyncio.Event()
    repository.faults["record_handle"] = [gate.wait]
    call = asyncio.create_task(rig.submit())
    await eventually(lambda: repository.calls["record_handle"])
    task_id = (await repository.only_row()).task_id

    async with rig.running():
        await rig.service.cancel(ALICE, task_id)
        gate.set()
        row = await rig.until(task_id, lambda task: task.status.terminal)
    await call

    assert (row.status, rig.driver.cancels) == ("cancelled", ["r1"])


@pytest.mark.req("API-2", "TASK-20")
async def test_somebody_elses_task_is_not_found_and_administrators_see_all(rig: Rig) -> None:
    mine = await rig.submit()
    await rig.clock.advance(1)
    theirs = await rig.submit(context=CallContext(principal=BOB, thread_id="t2"))

    for call in (rig.service.get, rig.service.cancel):
        with pytest.raises(NotFound):
            await call(ALICE, theirs.task_id)
        with pytest.raises(NotFound):
            await call(ALICE, "no-such-task")
        with pytest.raises(NotFound):
            await call(ALICE, mine.task_id, thread_id="another-thread")
    assert (await rig.task(theirs.task_id)).cancel_requested_at is None
    assert (await rig.service.get(ADMIN, theirs.task_id)).user_id == "bob"

    async def listed(principal: Principal, task_filter: TaskFilter) -> list[str]:
        return [task.task_id for task in (await rig.service.list(principal, task_filter)).items]

    assert await listed(ALICE, TaskFilter()) == [mine.task_id]
    assert await listed(ALICE, TaskFilter(user_id="bob")) == [mine.task_id]
    assert await listed(ALICE, TaskFilter(thread_id="t2")) == []
    assert await listed(ADMIN, TaskFilter()) == [theirs.task_id, mine.task_id]
    assert await listed(ADMIN, TaskFilter(user_id="bob")) == [theirs.task_id]


@pytest.mark.req("TASK-20")
async def test_an_agent_cancels_by_id_or_by_a_name_that_is_no_others(rig: Rig) -> None:
    by_id, by_name = await rig.submit("count"), await rig.submit("hash")
    await rig.submit("hash", context=CallContext(principal=ALICE, thread_id="t2"))

    assert (await rig.service.cancel_by_name_or_id(CONTEXT, by_id.task_id)).task_id == by_id.task_id
    assert (await rig.service.cancel_by_name_or_id(CONTEXT, "hash")).task_id == by_name.task_id
    with pytest.raises(NotFound):
        await rig.service.cancel_by_name_or_id(CONTEXT, "nothing")


@pytest.mark.req("TASK-20")
async def test_an_ambiguous_name_lists_the_matches_and_cancels_none(rig: Rig) -> None:
    first, second = await rig.submit("hash"), await rig.submit("hash")

    with pytest.raises(AmbiguousName) as raised:
        await rig.service.cancel_by_name_or_id(CONTEXT, "hash")

    assert len(raised.value.matches) == 2
    assert first.task_id in str(raised.value)
    assert second.task_id in str(raised.value)
    for each in (first, second):
        assert (await rig.task(each.task_id)).cancel_requested_at is None


@pytest.mark.req("TASK-20", "TASK-17")
async def test_a_name_means_the_task_under_way_rather_than_one_that_is_over(rig: Rig) -> None:
    rig.driver.on_submit = [completed()]
    over = await rig.submit("hash")
    rig.driver.on_submit = []
    under_way = await rig.submit("hash")

    assert (await rig.service.cancel_by_name_or_id(CONTEXT, "hash")).task_id == under_way.task_id
    assert (await rig.service.cancel_by_name_or_id(CONTEXT, over.task_id)).status == "completed"
