"""What the holder of a lease writes back (TASK-7, 8, 9, 10, 12, 13, 17; NOTE-1; BOUND-4)."""

import asyncio
import logging
from typing import Any

import pytest
from support.stored_tasks import ASKING, COMPLETED, WORKING, Tasks

from moorage.contract import AttentionKind, TaskOutcome, TaskStatus, TaskUpdate


@pytest.mark.req("TASK-7", "TASK-6")
async def test_a_good_poll_moves_the_times_and_ends_the_lease(tasks: Tasks) -> None:
    await tasks.track("t1")
    claim = await tasks.claim_one()
    tasks.clock.move(2)

    assert await tasks.apply(tasks.polled(claim)) == {"t1"}

    task = await tasks.get("t1")
    assert (task.last_polled_at, task.next_poll_at) == (tasks.clock.now(), tasks.in_seconds(5))
    assert task.updated_at == tasks.clock.now()
    assert await tasks.claim() == []
    tasks.clock.move(5)
    await tasks.claim_one()


@pytest.mark.req("TASK-8", "TASK-13", "NOTE-1")
async def test_poll_errors_count_up_degrade_and_are_cleared_by_a_good_poll(tasks: Tasks) -> None:
    await tasks.track("t1")
    claim = await tasks.claim_one()
    failed = tasks.polled(
        claim,
        None,
        poll_error="no answer",
        poll_error_count=3,
        tracking_degraded=True,
        attention=AttentionKind.TRACKING_DEGRADED,
        attention_fingerprint="degraded 1",
    )
    assert await tasks.apply(failed) == {"t1"}

    task = await tasks.get("t1")
    assert (task.poll_error_count, task.last_poll_error, task.tracking_degraded) == (3, "no answer", True)
    assert (task.status, task.event_version, task.event_kind) == ("working", 1, "tracking_degraded")
    tasks.clock.move(5)
    await tasks.apply(tasks.polled(await tasks.claim_one()))
    task = await tasks.get("t1")
    assert (task.poll_error_count, task.last_poll_error, task.tracking_degraded) == (0, None, False)
    assert (task.event_version, task.notification_status) == (1, "pending")


@pytest.mark.req("TASK-9", "TASK-13")
async def test_the_end_of_a_task_is_final(tasks: Tasks) -> None:
    await tasks.track("t1")
    outcome = TaskOutcome(
        status=TaskStatus.FAILED,
        error="it broke",
        error_code="broken",
        result_preview="half a",
        result_truncated=True,
        result_artifact_json='{"uri":"a:b"}',
    )
    ended = tasks.polled(
        await tasks.claim_one(), outcome, attention=AttentionKind.TERMINAL, attention_fingerprint="end"
    )
    assert await tasks.apply(ended) == {"t1"}

    task = await tasks.get("t1")
    assert (task.status, task.error, task.error_code) == ("failed", "it broke", "broken")
    assert (task.result, task.result_preview, task.result_truncated) == (None, "half a", True)
    assert (task.result_artifact, task.finished_at) == ({"uri": "a:b"}, tasks.clock.now())
    assert (task.next_poll_at, task.next_cancel_at) == (None, None)
    tasks.clock.move(100_000)
    assert await tasks.claim() == []
    assert await tasks.repository.request_cancel("t1") == task
    assert await tasks.repository.next_due_at() is None


@pytest.mark.req("TASK-12", "TASK-13", "NOTE-1")
async def test_a_question_is_kept_while_it_stands(tasks: Tasks) -> None:
    await tasks.track("t1")
    asking = tasks.polled(
        await tasks.claim_one(), ASKING, attention=AttentionKind.INPUT_REQUIRED, attention_fingerprint="q1"
    )
    await tasks.apply(asking)

    task = await tasks.get("t1")
    assert (task.status, task.input_required) == ("input_required", {"question": "?"})
    tasks.clock.move(5)
    claim = await tasks.claim_one()
    assert claim.task.input_required == {"question": "?"}
    await tasks.apply(tasks.polled(claim))
    assert (await tasks.get("t1")).input_required is None


@pytest.mark.req("NOTE-1", "NOTE-3")
async def test_the_same_event_is_no_news_and_a_newer_one_replaces_it(tasks: Tasks) -> None:
    await tasks.track("t1")

    async def ask(fingerprint: str) -> int:
        claim = await tasks.claim_one()
        update = tasks.polled(
            claim, ASKING, attention=AttentionKind.INPUT_REQUIRED, attention_fingerprint=fingerprint
        )
        assert await tasks.apply(update) == {"t1"}
        tasks.clock.move(5)
        return (await tasks.get("t1")).event_version

    assert [await ask("q1"), await ask("q1"), await ask("q2")] == [1, 1, 2]


@pytest.mark.req("TASK-17")
async def test_a_cancel_request_is_recorded_once_and_makes_the_task_due(tasks: Tasks) -> None:
    await tasks.track("t1", due_in=60)
    first = await tasks.repository.request_cancel("t1")
    tasks.clock.move(1)
    second = await tasks.repository.request_cancel("t1")

    assert first is not None
    assert first == second
    assert first.next_cancel_at == first.cancel_requested_at
    claim = await tasks.claim_one()
    assert claim.task.next_poll_at == tasks.in_seconds(59)
    assert await tasks.repository.request_cancel("nobody") is None


@pytest.mark.req("TASK-17", "TASK-8")
async def test_a_cancel_that_fails_is_retried_beside_the_polls(tasks: Tasks) -> None:
    await tasks.track("t1", due_in=60)
    await tasks.repository.request_cancel("t1")
    claim = await tasks.claim_one()
    tried = TaskUpdate(
        task_id="t1",
        token=claim.token,
        cancel_attempted=True,
        cancel_attempt_count=1,
        cancel_error="refused",
        next_cancel_at=tasks.in_seconds(10),
    )
    await tasks.apply(tried)

    task = await tasks.get("t1")
    assert (task.cancel_attempt_count, task.last_cancel_error) == (1, "refused")
    assert (task.next_cancel_at, task.next_poll_at) == (tasks.in_seconds(10), tasks.in_seconds(60))
    assert (task.last_polled_at, task.poll_error_count) == (None, 0)
    assert await tasks.repository.next_due_at() == tasks.in_seconds(10)
    tasks.clock.move(10)
    claim = await tasks.claim_one()
    await tasks.apply(
        TaskUpdate(task_id="t1", token=claim.token, cancel_attempted=True, cancel_attempt_count=2)
    )
    task = await tasks.get("t1")
    assert (task.cancel_attempt_count, task.last_cancel_error, task.next_cancel_at) == (2, None, None)
    assert await tasks.repository.next_due_at() == tasks.in_seconds(50)


@pytest.mark.req("TASK-17")
async def test_a_cancel_requested_during_a_poll_is_due_right_after_it(tasks: Tasks) -> None:
    await tasks.track("t1")
    claim = await tasks.claim_one()
    await tasks.repository.request_cancel("t1")
    assert await tasks.claim() == []

    await tasks.apply(tasks.polled(claim))

    again = await tasks.claim_one()
    assert again.task.next_cancel_at == tasks.clock.now()


@pytest.mark.req("TASK-6", "TASK-9")
async def test_of_a_batch_only_what_is_still_leased_lands(tasks: Tasks) -> None:
    for number in range(3):
        await tasks.track(f"t{number}")
    claims = {claim.task.task_id: claim for claim in await tasks.claim()}
    wrong = TaskUpdate(task_id="t1", token="wrong", outcome=COMPLETED)
    unknown = TaskUpdate(task_id="t9", token=claims["t0"].token, outcome=COMPLETED)

    landed = await tasks.apply(
        tasks.polled(claims["t0"], COMPLETED), wrong, unknown, tasks.polled(claims["t2"])
    )

    assert landed == {"t0", "t2"}
    statuses = [str((await tasks.get(f"t{number}")).status) for number in range(3)]
    assert statuses == ["completed", "working", "working"]
    assert await tasks.apply() == set()


@pytest.mark.req("BOUND-4", "TASK-10")
async def test_nul_and_lone_surrogates_are_stored_or_replaced_and_harm_no_sibling(tasks: Tasks) -> None:
    await tasks.track("t1")
    await tasks.track("t2")
    odd = "nul \x00 lone \ud800 pair \U0001f600 é"
    outcome = TaskOutcome(
        status=TaskStatus.COMPLETED,
        error=odd,
        error_code=odd,
        result_preview=odd,
        # Neither escaped nor even valid: a driver's own serialisation, say.
        result_json=f'{{"text":"{odd}"}}',
        result_artifact_json='{"uri":"\\u0000\\ud800"}',
    )
    one, two = await tasks.claim()

    landed = await tasks.apply(
        tasks.polled(
            one, outcome, poll_error=odd, attention=AttentionKind.TERMINAL, attention_fingerprint=odd
        ),
        tasks.polled(two, COMPLETED),
    )

    assert landed == {"t1", "t2"}
    task = await tasks.get(one.task.task_id)
    assert task.result == {"text": odd}
    assert task.result_artifact == {"uri": "\x00\ud800"}
    assert task.error == "nul \ufffd lone \ufffd pair \U0001f600 é"
    assert task.result_preview == task.error


@pytest.mark.req("TASK-10")
@pytest.mark.parametrize(
    "poison",
    [
        {"poll_error_count": 2**40},
        {"poll_error_count": "many"},
        {"poll_error_count": float("nan")},
        {"next_poll_at": "tomorrow"},
        {"cancel_attempted": True, "cancel_attempt_count": object()},
        {"outcome": TaskOutcome(status=TaskStatus.COMPLETED, error_code=b"x")},  # type: ignore[arg-type]
    ],
    ids=["too large", "text", "nan", "no moment", "no value", "bytes"],
)
async def test_a_poisoned_row_is_dropped_alone(
    tasks: Tasks, poison: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(5):
        await tasks.track(f"t{number}")
    claims = {claim.task.task_id: claim for claim in await tasks.claim()}
    updates = [tasks.polled(claims[f"t{number}"]) for number in (0, 1, 3, 4)]
    bad = {"task_id": "t2", "token": claims["t2"].token, **poison}
    healthy = {"t0", "t1", "t3", "t4"}

    with caplog.at_level(logging.ERROR):
        landed = await tasks.apply(*updates[:2], TaskUpdate(**bad), *updates[2:])

    # SQLite has no column types that would refuse a number or a text.
    assert landed >= healthy
    assert landed == healthy or landed == {*healthy, "t2"}
    if landed == healthy:
        assert "t2" in caplog.text
        tasks.clock.move(10)
        assert "t2" in {claim.task.task_id for claim in await tasks.claim()}


@pytest.mark.req("TASK-6", "TASK-9")
async def test_applies_and_cancels_at_once_lose_nothing(tasks: Tasks) -> None:
    for number in range(20):
        await tasks.track(f"t{number}")
    claims = await tasks.claim()

    await asyncio.gather(
        tasks.apply(*(tasks.polled(claim) for claim in claims)),
        *(tasks.repository.request_cancel(f"t{number}") for number in reversed(range(20))),
        tasks.repository.delete_thread("alice", "thread-1"),
    )

    due = {claim.task.task_id for claim in await tasks.claim()}
    assert due == {f"t{number}" for number in range(20)}
    assert {(await tasks.get(f"t{number}")).status for number in range(20)} == {WORKING.status}
