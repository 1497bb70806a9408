"""Answers to tasks that require input (TASK-16)."""

import asyncio

import pytest
from support.stored_tasks import ASKING, COMPLETED, Tasks

from moorage.contract import AttentionKind, Conflict, NotFound


@pytest.fixture
async def asking(tasks: Tasks) -> Tasks:
    await tasks.track(
        "t1", outcome=ASKING, due_in=60, attention=AttentionKind.INPUT_REQUIRED, fingerprint="q"
    )
    return tasks


@pytest.mark.req("TASK-16")
async def test_an_answer_is_recorded_once_per_id(asking: Tasks) -> None:
    first, made = await asking.repository.record_answer("t1", "a1", response_json='{"yes":"\\u0000"}')
    again, made_again = await asking.repository.record_answer("t1", "a1", response_json='"something else"')
    _, made_other = await asking.repository.record_answer("t1", "a2", response_json="1")

    assert (made, made_again, made_other) == (True, False, True)
    assert first == again
    assert (first.state, first.response, first.created_at) == (
        "recorded",
        {"yes": "\x00"},
        asking.clock.now(),
    )


@pytest.mark.req("TASK-16")
async def test_the_same_answer_at_once_is_made_by_one_caller_only(asking: Tasks) -> None:
    answers = await asyncio.gather(
        *(asking.repository.record_answer("t1", "a1", response_json=f"{number}") for number in range(8))
    )

    assert [made for _, made in answers].count(True) == 1
    assert len({answer.response for answer, _ in answers}) == 1


@pytest.mark.req("TASK-16")
async def test_a_finished_answer_makes_the_poll_due_and_stays_as_it_ended(asking: Tasks) -> None:
    await asking.repository.record_answer("t1", "a1", response_json="1")
    asking.clock.move(3)

    assert await asking.repository.finish_answer("t1", "a1", state="unknown", error="no\x00 answer")
    assert not await asking.repository.finish_answer("t1", "a1", state="sent")

    assert (await asking.claim_one()).task.next_poll_at == asking.clock.now()
    answer, made = await asking.repository.record_answer("t1", "a1", response_json="1")
    assert (made, answer.state, answer.error) == (False, "unknown", "no\ufffd answer")
    assert not await asking.repository.finish_answer("t1", "unheard of", state="sent")


@pytest.mark.req("TASK-16")
async def test_only_a_task_that_asks_takes_an_answer(asking: Tasks) -> None:
    await asking.track("t2")
    await asking.repository.record_answer("t1", "a1", response_json="1")
    await asking.apply(asking.polled(await asking.claim_one(), COMPLETED))
    asking.clock.move(60)
    await asking.apply(asking.polled(await asking.claim_one(), COMPLETED))

    for task_id in ("t1", "t2"):
        with pytest.raises(Conflict, match="requires no input"):
            await asking.repository.record_answer(task_id, "a9", response_json="1")
    with pytest.raises(NotFound):
        await asking.repository.record_answer("t3", "a1", response_json="1")
    assert await asking.repository.finish_answer("t1", "a1", state="sent")
    assert await asking.repository.next_due_at() is None
