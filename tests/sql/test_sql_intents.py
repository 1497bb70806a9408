"""Submissions: the intent, its handle, its failure (TASK-3, TASK-5, TASK-22)."""

import asyncio

import pytest
from sqlalchemy.exc import IntegrityError
from support.clock import FakeClock
from support.stored_tasks import COMPLETED, WORKING, Tasks, new_task

from moorage.contract import AttentionKind, RemoteTaskConflict, TaskStatus


@pytest.mark.req("TASK-22")
async def test_an_intent_is_visible_and_is_not_polled(tasks: Tasks) -> None:
    await tasks.intent("t1", holder="replica-1")

    task = await tasks.get("t1")

    assert (task.status, task.remote_id, task.next_poll_at) == (TaskStatus.SUBMITTED, None, None)
    assert (task.task_name, task.user_id, task.server_name) == ("count", "alice", "files")
    assert task.binding == {"status_tool": "count_status"}
    assert task.holder == "replica-1"
    assert await tasks.claim() == []
    assert await tasks.repository.next_due_at() == tasks.in_seconds(30)


@pytest.mark.req("TASK-3")
async def test_a_handle_makes_the_intent_a_tracked_task(tasks: Tasks) -> None:
    task = await tasks.track("t1", due_in=7)

    assert (task.status, task.remote_id) == (TaskStatus.WORKING, "remote-t1")
    assert task.next_poll_at == tasks.in_seconds(7)
    assert task.event_version == 0
    assert await tasks.repository.next_due_at() == tasks.in_seconds(7)


@pytest.mark.req("TASK-3", "TASK-13")
async def test_a_submit_that_is_over_at_once_is_never_polled_and_is_notified(tasks: Tasks) -> None:
    task = await tasks.finish("t1")

    assert (task.status, task.result, task.finished_at) == ("completed", {"files": 3}, tasks.clock.now())
    assert (task.event_version, task.event_kind) == (1, AttentionKind.TERMINAL)
    assert task.notification_status == "pending"
    tasks.clock.move(1_000)
    assert await tasks.claim() == []
    assert await tasks.repository.next_due_at() is None


@pytest.mark.req("TASK-6", "TASK-22")
async def test_a_submitter_whose_lease_lapsed_or_whose_token_is_wrong_records_nothing(tasks: Tasks) -> None:
    token = await tasks.intent("t1")

    async def record(with_token: str) -> bool:
        return await tasks.repository.record_handle(
            "t1", with_token, remote_id="r", outcome=WORKING, next_poll_at=tasks.clock.now()
        )

    assert not await record("somebody else's")
    tasks.clock.move(30)
    assert not await record(token)
    assert (await tasks.get("t1")).remote_id is None


@pytest.mark.req("TASK-22")
async def test_lapsed_intents_fail_as_unknown_and_say_so(tasks: Tasks) -> None:
    token = await tasks.intent("t1", lease_seconds=10)
    await tasks.intent("t2", lease_seconds=20)
    await tasks.track("t3")
    tasks.clock.move(10)

    assert await tasks.repository.expire_intents() == 1
    assert await tasks.repository.expire_intents() == 0

    lost = await tasks.get("t1")
    assert (lost.status, lost.error_code, lost.finished_at) == (
        TaskStatus.FAILED,
        "submission_unknown",
        tasks.clock.now(),
    )
    assert lost.error
    assert (lost.event_kind, lost.notification_status) == (AttentionKind.TERMINAL, "pending")
    assert (await tasks.get("t2")).status is TaskStatus.SUBMITTED
    assert (await tasks.get("t3")).status is TaskStatus.WORKING
    assert not await tasks.repository.fail_intent("t1", None, error="late", error_code="late")
    assert not await tasks.repository.discard_intent("t1", token)


@pytest.mark.req("TASK-4", "TASK-22", "C60")
async def test_an_intent_fails_with_the_reason_and_keeps_the_remote_id(tasks: Tasks) -> None:
    token = await tasks.intent("t1")
    tasks.clock.move(40)

    assert not await tasks.repository.fail_intent("t1", token, error="too late", error_code="x")
    assert await tasks.repository.fail_intent("t1", None, error="boom", error_code="c", remote_id="r1")

    task = await tasks.get("t1")
    assert (task.status, task.error, task.error_code, task.remote_id) == ("failed", "boom", "c", "r1")
    assert task.event_version == 1
    assert not await tasks.repository.fail_intent("t1", None, error="again", error_code="c")


@pytest.mark.req("TASK-22")
async def test_a_discarded_intent_leaves_nothing(tasks: Tasks) -> None:
    token = await tasks.intent("t1")

    assert not await tasks.repository.discard_intent("t1", "another token")
    assert await tasks.repository.discard_intent("t1", token)
    assert await tasks.repository.get("t1") is None


@pytest.mark.req("TASK-22")
async def test_a_tracked_task_is_no_intent_that_could_be_discarded_or_failed(tasks: Tasks) -> None:
    await tasks.track("t1")

    assert not await tasks.repository.discard_intent("t1", tasks.tokens["t1"])
    assert not await tasks.repository.fail_intent("t1", None, error="x", error_code="x")
    assert (await tasks.get("t1")).status is TaskStatus.WORKING


@pytest.mark.req("TASK-5", "C60")
async def test_a_second_task_for_a_remote_one_is_refused_and_names_the_first(tasks: Tasks) -> None:
    first = await tasks.track("t1", remote_id="same")
    token = await tasks.intent("t2")

    with pytest.raises(RemoteTaskConflict) as caught:
        await tasks.repository.record_handle(
            "t2", token, remote_id="same", outcome=WORKING, next_poll_at=tasks.clock.now()
        )

    assert caught.value.existing_task_id == "t1"
    assert await tasks.get("t1") == first
    assert (await tasks.get("t2")).remote_id is None
    with pytest.raises(RemoteTaskConflict):
        await tasks.repository.fail_intent("t2", None, error="x", error_code="x", remote_id="same")


@pytest.mark.req("TASK-5")
async def test_the_key_is_of_user_server_and_remote_id_together(tasks: Tasks) -> None:
    await tasks.track("t1", remote_id="same")

    await tasks.track("t2", remote_id="same", user_id="bob")
    await tasks.track("t3", remote_id="same", server_name="other")


@pytest.mark.req("TASK-5")
async def test_another_collision_is_no_remote_conflict(tasks: Tasks) -> None:
    await tasks.intent("t1")

    with pytest.raises(IntegrityError):
        await tasks.repository.create_intent(new_task("t1"))


@pytest.mark.req("TASK-17")
async def test_a_cancel_of_an_intent_is_due_once_its_handle_is_there(tasks: Tasks) -> None:
    token = await tasks.intent("t1")
    requested = await tasks.repository.request_cancel("t1")
    assert requested is not None
    assert requested.cancel_requested_at == tasks.clock.now()
    assert await tasks.claim() == []

    await tasks.repository.record_handle(
        "t1", token, remote_id="r", outcome=WORKING, next_poll_at=tasks.in_seconds(60)
    )

    assert [claim.task.task_id for claim in await tasks.claim()] == ["t1"]


@pytest.mark.req("BOUND-4", "TASK-10")
async def test_nul_and_lone_surrogates_break_no_submission(tasks: Tasks) -> None:
    odd = "a\x00b\ud800c"
    await tasks.intent("t1", task_name=odd, binding={"x": odd})

    assert await tasks.repository.fail_intent("t1", None, error=odd, error_code="c", remote_id=odd)

    task = await tasks.get("t1")
    assert (task.task_name, task.error) == ("a\ufffdb\ufffdc", "a\ufffdb\ufffdc")
    assert task.binding == {"x": odd}


@pytest.mark.req("TASK-6")
async def test_many_submitters_at_once_all_get_their_rows(tasks: Tasks, clock: FakeClock) -> None:
    await asyncio.gather(*(tasks.track(f"t{number}", outcome=COMPLETED) for number in range(40)))

    tokens = set(tasks.tokens.values())
    assert len(tokens) == 40
    assert {(await tasks.get(f"t{number}")).status for number in range(40)} == {TaskStatus.COMPLETED}
