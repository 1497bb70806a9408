"""Submitting: what is recorded, and what is cleaned up when recording fails (case C60)."""

import asyncio
from typing import Any

import pytest
from support.clock import eventually
from support.fake_driver import asking, completed, failed, hang, hang_stubbornly, working
from support.faulty_tasks import FaultyTasks
from support.rig import ALICE, CONTEXT, Rig

from moorage.contract import (
    CredentialDenied,
    ProtocolViolation,
    RemoteTaskConflict,
    ServerUnavailable,
    StoreUnavailable,
    SubmitRejected,
    TaskBinding,
    TaskHandle,
    TaskStatus,
    TransientDriverError,
)
from moorage.contract.errors import ConfigError, DriverError, PluginError, PluginTimeout


@pytest.mark.req("TASK-3")
async def test_the_row_is_committed_before_the_local_id_is_returned(rig: Rig) -> None:
    submitted = await rig.submit("report")

    row = await rig.task(submitted.task_id)
    assert (submitted.task_name, submitted.status) == ("report", TaskStatus.WORKING)
    assert (row.remote_id, row.status, row.user_id, row.thread_id) == ("r1", "working", "alice", "t1")
    assert row.next_poll_at == rig.clock.now()


@pytest.mark.req("TASK-3", "TASK-12")
async def test_the_submit_answers_own_poll_hint_sets_the_first_poll(rig: Rig) -> None:
    rig.driver.on_submit = [working(poll_after_seconds=30)]

    row = await rig.task((await rig.submit()).task_id)

    assert row.next_poll_at is not None
    assert (row.next_poll_at - rig.clock.now()).total_seconds() == 30


@pytest.mark.req("TASK-3", "TASK-13")
async def test_a_submit_that_is_already_terminal_is_stored_so_and_never_polled(rig: Rig) -> None:
    rig.driver.on_submit = [completed({"files": 3})]

    submitted = await rig.submit()
    async with rig.running(notifier=True):
        await rig.clock.drive(lambda: rig.sink.seen)

    row = await rig.task(submitted.task_id)
    assert (submitted.status, row.result, row.next_poll_at) == ("completed", {"files": 3}, None)
    assert rig.driver.polls == []
    assert rig.sink.seen[0].result == {"files": 3}


@pytest.mark.req("TASK-12", "TASK-13")
async def test_a_submit_that_requires_input_at_once_wants_attention(rig: Rig) -> None:
    rig.driver.on_submit = [asking({"question": "which?"})]

    row = await rig.task((await rig.submit()).task_id)

    assert (row.status, row.event_kind, row.event_version) == ("input_required", "input_required", 1)
    assert row.input_required == {"question": "which?"}
    assert row.next_poll_at is not None
    assert (row.next_poll_at - rig.clock.now()).total_seconds() == 60


@pytest.mark.req("TASK-4")
async def test_a_store_that_fails_costs_the_remote_task_one_cancel_and_raises_its_own_error(
    rig: Rig, repository: FaultyTasks
) -> None:
    error = RuntimeError("disk full")
    repository.faults["record_handle"] = [error]

    with pytest.raises(RuntimeError) as raised:
        await rig.submit()

    assert raised.value is error
    assert rig.driver.cancels == ["r1"]
    row = await repository.only_row()
    assert (row.status, row.error_code) == ("failed", "submission_cancelled")
    assert "RuntimeError" in (row.error or "")
    assert "disk full" not in (row.error or "")


@pytest.mark.req("TASK-4", "TASK-22")
async def test_an_intent_that_cannot_be_stored_sends_nothing(rig: Rig, repository: FaultyTasks) -> None:
    repository.faults["create_intent"] = [StoreUnavailable("gone")]

    with pytest.raises(StoreUnavailable):
        await rig.submit()

    assert rig.driver.submits == []
    assert await repository.rows() == []


@pytest.mark.req("TASK-4")
async def test_a_caller_cancelled_while_the_handle_is_stored_leaves_a_cancelled_remote_task(
    rig: Rig, repository: FaultyTasks
) -> None:
    repository.faults["record_handle"] = [hang]
    call = asyncio.create_task(rig.submit())
    await eventually(lambda: repository.calls["record_handle"])

    call.cancel()
    await rig.clock.drive(call.done)

    assert call.cancelled()
    assert rig.driver.cancels == ["r1"]
    row = await repository.only_row()
    assert row.status == "failed"
    assert "cancelled" in (row.error or "")


@pytest.mark.req("TASK-4", "TASK-17")
async def test_a_handle_stored_after_all_is_left_to_the_poller_when_the_cancel_fails(
    rig: Rig, repository: FaultyTasks
) -> None:
    stored = asyncio.Event()
    repository.faults["record_handle"] = [stored.wait]
    rig.driver.on_cancel["*"] = [TransientDriverError("no route")]
    call = asyncio.create_task(rig.submit())
    await eventually(lambda: repository.calls["record_handle"])

    call.cancel()
    await asyncio.sleep(0)
    stored.set()
    await rig.clock.drive(call.done)

    row = await repository.only_row()
    assert call.cancelled()
    assert (row.status, row.remote_id) == ("working", "r1")
    assert row.cancel_requested_at is not None


@pytest.mark.req("TASK-4")
@pytest.mark.parametrize(
    "step", [RuntimeError("cancel is broken"), hang, hang_stubbornly, asyncio.CancelledError()]
)
async def test_a_failing_compensation_is_bounded_and_hides_nothing(
    rig: Rig, repository: FaultyTasks, step: Any
) -> None:
    error = RuntimeError("disk full")
    repository.faults["record_handle"] = [error]
    rig.driver.on_cancel["*"] = [step]
    call = asyncio.create_task(rig.submit())

    waited = await rig.clock.drive(call.done)

    assert call.exception() is error
    assert len(rig.driver.cancels) == 1
    assert waited <= 15
    row = await repository.only_row()
    assert (row.status, row.error_code) == ("failed", "submission_orphaned")
    assert "may go on" in (row.error or "")


@pytest.mark.req("TASK-4")
async def test_a_second_cancellation_during_the_compensation_changes_nothing(
    rig: Rig, repository: FaultyTasks
) -> None:
    may_end = asyncio.Event()

    async def slow_cancel(_: object) -> Any:
        await may_end.wait()
        return failed("stopped")

    repository.faults["record_handle"] = [hang]
    rig.driver.on_cancel["*"] = [slow_cancel]
    call = asyncio.create_task(rig.submit())
    await eventually(lambda: repository.calls["record_handle"])
    call.cancel()
    await rig.clock.drive(lambda: rig.driver.cancels)

    call.cancel()
    await asyncio.sleep(0)
    call.cancel()
    may_end.set()
    await rig.clock.drive(call.done)

    assert call.cancelled()
    assert rig.driver.cancels == ["r1"]
    assert (await repository.only_row()).status == "failed"


@pytest.mark.req("TASK-4")
async def test_store_and_remote_both_hanging_still_let_the_caller_go(
    rig: Rig, repository: FaultyTasks
) -> None:
    repository.faults["record_handle"] = [hang]
    repository.faults["fail_intent"] = [hang]
    rig.driver.on_cancel["*"] = [hang]
    call = asyncio.create_task(rig.submit())
    await eventually(lambda: repository.calls["record_handle"])
    call.cancel()

    waited = await rig.clock.drive(call.done)

    assert call.cancelled()
    assert waited <= 15


@pytest.mark.req("TASK-5", "TASK-22")
async def test_a_remote_task_that_another_row_owns_is_neither_cancelled_nor_tracked_twice(
    rig: Rig, repository: FaultyTasks
) -> None:
    rig.driver.on_submit = [lambda call: _handle("same")]
    first = await rig.submit()

    with pytest.raises(RemoteTaskConflict) as raised:
        await rig.submit()

    assert raised.value.existing_task_id == first.task_id
    assert first.task_id in str(raised.value)
    assert rig.driver.cancels == []
    assert [row.task_id for row in await repository.rows()] == [first.task_id]


@pytest.mark.req("TASK-5")
async def test_a_conflict_that_shows_after_the_caller_left_is_not_cancelled_either(
    rig: Rig, repository: FaultyTasks
) -> None:
    rig.driver.on_submit = [lambda call: _handle("same")]
    first = await rig.submit()
    stored = asyncio.Event()
    repository.faults["record_handle"] = [stored.wait]
    call = asyncio.create_task(rig.submit())
    await eventually(lambda: repository.calls["record_handle"] == 2)

    call.cancel()
    await asyncio.sleep(0)
    stored.set()
    await rig.clock.drive(call.done)

    assert call.cancelled()
    assert rig.driver.cancels == []
    assert [row.task_id for row in await repository.rows()] == [first.task_id]


@pytest.mark.req("TASK-23", "TASK-4")
async def test_a_malformed_submit_reply_with_a_readable_id_is_compensated(
    rig: Rig, repository: FaultyTasks
) -> None:
    error = ProtocolViolation("server 'files': no content", remote_id="r9", code="bad_reply")
    rig.driver.on_submit = [error]

    with pytest.raises(ProtocolViolation) as raised:
        await rig.submit()

    row = await repository.only_row()
    assert raised.value is error
    assert rig.driver.cancels == ["r9"]
    assert (row.status, row.error_code, row.remote_id) == ("failed", "bad_reply", "r9")
    assert "server 'files': no content" in (row.error or "")


@pytest.mark.req("TASK-23")
async def test_a_malformed_submit_reply_without_an_id_stays_visible_and_is_not_repeated(
    rig: Rig, repository: FaultyTasks
) -> None:
    rig.driver.on_submit = [ProtocolViolation("server 'files': the reply is text only")]

    with pytest.raises(ProtocolViolation):
        await rig.submit()

    row = await repository.only_row()
    assert len(rig.driver.submits) == 1
    assert (row.status, row.notification_status) == ("failed", "pending")
    assert "text only" in (row.error or "")


@pytest.mark.req("TASK-22")
@pytest.mark.parametrize(
    "error",
    [
        SubmitRejected("the server answered: queue full"),
        CredentialDenied("no mapping for this user"),
        ServerUnavailable("connection refused", server="files"),
    ],
)
async def test_where_the_remote_certainly_got_nothing_no_row_remains(
    rig: Rig, repository: FaultyTasks, error: Exception
) -> None:
    if isinstance(error, ServerUnavailable):
        error.sent = False
    rig.driver.on_submit = [error]

    with pytest.raises(type(error)) as raised:
        await rig.submit()

    assert raised.value is error
    assert await repository.rows() == []


@pytest.mark.req("TASK-22")
@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (ServerUnavailable("the connection was lost", server="files"), ServerUnavailable),
        (TransientDriverError("busy"), TransientDriverError),
        (KeyError("driver bug"), PluginError),
        (asyncio.CancelledError(), PluginError),
        (lambda call: _answer("no handle"), PluginError),
    ],
)
async def test_an_unknown_outcome_is_shown_and_never_resubmitted(
    rig: Rig, repository: FaultyTasks, step: Any, expected: type[Exception]
) -> None:
    rig.driver.on_submit = [step]

    with pytest.raises(expected):
        await rig.submit()
    async with rig.running(notifier=True):
        await rig.clock.drive(lambda: rig.sink.seen)

    row = await repository.only_row()
    assert len(rig.driver.submits) == 1
    assert (row.status, row.error_code) == ("failed", "submission_unknown")
    assert rig.sink.seen[0].status is TaskStatus.FAILED


@pytest.mark.req("TASK-22", "PLUG-7")
async def test_a_submit_without_an_answer_ends_at_its_deadline(rig: Rig, repository: FaultyTasks) -> None:
    rig.driver.on_submit = [hang]
    call = asyncio.create_task(rig.submit())

    waited = await rig.clock.drive(call.done)

    assert isinstance(call.exception(), PluginTimeout)
    assert waited < rig.settings.lease_seconds
    row = await repository.only_row()
    assert (row.status, row.error_code) == ("failed", "submission_unknown")


@pytest.mark.req("TASK-4", "TASK-22")
async def test_a_caller_that_leaves_during_the_submit_learns_its_remote_task_for_the_cancel(
    rig: Rig, repository: FaultyTasks
) -> None:
    accepted = asyncio.Event()

    async def slow_submit(_: object) -> TaskHandle:
        await accepted.wait()
        return TaskHandle("r7")

    rig.driver.on_submit = [slow_submit]
    call = asyncio.create_task(rig.submit())
    await eventually(lambda: rig.driver.submits)

    call.cancel()
    await asyncio.sleep(0)
    accepted.set()
    await rig.clock.drive(call.done)

    assert call.cancelled()
    assert rig.driver.cancels == ["r7"]
    assert (await repository.only_row()).status == "failed"


@pytest.mark.req("TASK-22")
async def test_a_caller_that_leaves_during_a_hanging_submit_leaves_a_row_that_says_so(
    rig: Rig, repository: FaultyTasks
) -> None:
    rig.driver.on_submit = [hang]
    call = asyncio.create_task(rig.submit())
    await eventually(lambda: rig.driver.submits)
    call.cancel()

    waited = await rig.clock.drive(call.done)

    row = await repository.only_row()
    assert call.cancelled()
    assert waited <= 15
    assert (row.status, row.error_code) == ("failed", "submission_unknown")


@pytest.mark.req("TASK-22")
async def test_a_caller_that_leaves_before_anything_was_sent_leaves_no_row(
    rig: Rig, repository: FaultyTasks
) -> None:
    stored = asyncio.Event()
    repository.faults["create_intent"] = [stored.wait]
    call = asyncio.create_task(rig.submit())
    await eventually(lambda: repository.calls["create_intent"])

    call.cancel()
    await asyncio.sleep(0)
    stored.set()
    await rig.clock.drive(call.done)

    assert repository.calls["discard_intent"] == 1
    assert call.cancelled()
    assert rig.driver.submits == []
    assert await repository.rows() == []


@pytest.mark.req("TASK-22")
async def test_a_submitter_that_died_leaves_a_task_that_fails_once_its_lease_has_lapsed(
    rig: Rig, repository: FaultyTasks
) -> None:
    repository.faults["record_handle"] = [hang]
    call = asyncio.create_task(rig.submit())
    await eventually(lambda: repository.calls["record_handle"])
    task_id = (await repository.only_row()).task_id
    # The process is gone: nothing of it will ever run again.
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
    repository.faults["fail_intent"] = [RuntimeError("dead")]
    rig.driver.on_cancel["*"] = [RuntimeError("dead")]
    await rig.clock.drive(call.done)

    heir = Rig(repository.as_repository, rig.clock, owner="replica-2")
    async with heir.running(notifier=True):
        row = await heir.until(task_id, lambda task: task.status.terminal)
        await rig.clock.drive(lambda: heir.sink.seen)

    assert (row.status, row.error_code) == ("failed", "submission_unknown")
    assert len(rig.driver.submits) == 1


@pytest.mark.req("TASK-4", "TASK-22")
async def test_a_submission_that_outlived_its_lease_is_compensated(rig: Rig, repository: FaultyTasks) -> None:
    async def too_slow() -> None:
        rig.clock.move(rig.settings.lease_seconds)
        await repository.expire_intents()

    repository.faults["record_handle"] = [too_slow]
    call = asyncio.create_task(rig.submit())
    await rig.clock.drive(call.done)

    assert isinstance(call.exception(), StoreUnavailable)
    assert rig.driver.cancels == ["r1"]
    assert (await repository.only_row()).status == "failed"


@pytest.mark.req("BOUND-3")
@pytest.mark.parametrize("name", ["", "   ", "x" * 256, "nul\0name"])
async def test_impossible_task_names_are_refused_before_anything_is_sent(rig: Rig, name: str) -> None:
    with pytest.raises(ConfigError, match="task name"):
        await rig.submit(name)
    assert rig.driver.submits == []


@pytest.mark.req("BOUND-3")
@pytest.mark.parametrize("server", ["", "\t", "x" * 129])
async def test_impossible_server_names_are_refused_before_anything_is_sent(rig: Rig, server: str) -> None:
    with pytest.raises(ConfigError, match="server name"):
        await rig.submit(server=server)
    assert rig.driver.submits == []


@pytest.mark.req("BOUND-3")
@pytest.mark.parametrize("remote_id", ["x" * 256, "x" * 10_000, "a\0b", "a\ud800"])
async def test_a_remote_id_that_cannot_be_stored_is_rejected_after_its_task_was_cancelled(
    rig: Rig, repository: FaultyTasks, remote_id: str
) -> None:
    rig.driver.on_submit = [lambda call: _handle(remote_id)]

    with pytest.raises(ProtocolViolation):
        await rig.submit()

    row = await repository.only_row()
    assert rig.driver.cancels == [remote_id]
    assert (row.status, row.remote_id) == ("failed", None)


@pytest.mark.req("BOUND-2", "TASK-4")
async def test_a_submit_snapshot_that_cannot_be_stored_is_compensated(
    rig: Rig, repository: FaultyTasks
) -> None:
    rig.driver.on_submit = [asking({"form": "x" * 70_000})]

    with pytest.raises(ProtocolViolation, match="input_required"):
        await rig.submit()

    assert rig.driver.cancels == ["r1"]
    assert (await repository.only_row()).status == "failed"


@pytest.mark.req("TASK-18")
async def test_a_server_that_takes_no_new_tasks_refuses_before_a_row_exists(
    rig: Rig, repository: FaultyTasks
) -> None:
    rig.service._server_allowed = lambda server: f"server {server!r} is disabled"

    with pytest.raises(SubmitRejected, match="'files' is disabled"):
        await rig.submit()

    assert await repository.rows() == []


@pytest.mark.req("TASK-14")
async def test_a_binding_to_a_driver_that_is_not_installed_names_it(rig: Rig) -> None:
    with pytest.raises(DriverError, match="'ghost'"):
        await rig.service.submit(
            server="files", binding=TaskBinding("ghost", "report"), arguments={}, context=CONTEXT
        )


@pytest.mark.req("CRED-7")
async def test_background_calls_carry_the_owner_but_no_secrets(rig: Rig) -> None:
    context = type(CONTEXT)(principal=ALICE, thread_id="t1", secrets={"key": "s3cret-value"})
    await rig.submit(context=context)

    async with rig.running():
        await rig.clock.drive(lambda: rig.driver.refs)

    assert rig.driver.submits[0].context.secrets == {"key": "s3cret-value"}
    ref = rig.driver.refs[0]
    assert (ref.context.principal.user_id, ref.context.background, dict(ref.context.secrets)) == (
        "alice",
        True,
        {},
    )


async def _handle(remote_id: str) -> TaskHandle:
    return TaskHandle(remote_id)


async def _answer(value: object) -> object:
    return value
