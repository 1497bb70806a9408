"""The notification part of a row (NOTE-1, NOTE-2, NOTE-3)."""

import asyncio
from typing import Any

import pytest
from support.stored_tasks import ASKING, COMPLETED, Tasks

from moorage.contract import AttentionKind, ClaimedNotification, NotificationUpdate


async def claim(tasks: Tasks, limit: int = 10, seconds: float = 10) -> list[ClaimedNotification]:
    return [*await tasks.repository.claim_notifications("replica-1", limit=limit, lease_seconds=seconds)]


def outcome(of: ClaimedNotification, **fields: Any) -> NotificationUpdate:
    given: dict[str, Any] = {"status": "delivered", "attempt": of.attempt, "failure_count": 0, **fields}
    return NotificationUpdate(task_id=of.task.task_id, token=of.token, version=of.version, **given)


@pytest.mark.req("NOTE-1", "NOTE-2")
async def test_a_pending_event_is_claimed_once_with_all_that_it_tells(tasks: Tasks) -> None:
    await tasks.track("t0")
    await tasks.finish("t1")

    (claimed,) = await claim(tasks)

    assert (claimed.version, claimed.attempt) == (1, 0)
    assert claimed.task == await tasks.get("t1")
    assert claimed.task.result == {"files": 3}
    assert claimed.lease_expires_at == tasks.in_seconds(10)
    assert await claim(tasks) == []
    assert await tasks.repository.next_notification_at() == tasks.in_seconds(10)
    tasks.clock.move(10)
    (again,) = await claim(tasks)
    assert again.token != claimed.token
    assert not await tasks.repository.apply_notification(outcome(claimed))


@pytest.mark.req("NOTE-2")
async def test_a_delivered_event_is_over(tasks: Tasks) -> None:
    await tasks.finish("t1")
    (claimed,) = await claim(tasks)

    assert await tasks.repository.apply_notification(outcome(claimed))

    assert (await tasks.get("t1")).notification_status == "delivered"
    tasks.clock.move(1_000)
    assert await claim(tasks) == []
    assert await tasks.repository.next_notification_at() is None
    assert not await tasks.repository.apply_notification(outcome(claimed))


@pytest.mark.req("NOTE-3", "BOUND-4")
async def test_a_failure_waits_for_its_next_attempt_and_stops_in_dead_letter(tasks: Tasks) -> None:
    await tasks.finish("t1")
    (claimed,) = await claim(tasks)
    failed = outcome(
        claimed, status="pending", attempt=1, failure_count=1, error="no\x00", next_at=tasks.in_seconds(20)
    )
    assert await tasks.repository.apply_notification(failed)

    task = await tasks.get("t1")
    assert (task.notification_attempt, task.notification_failure_count) == (1, 1)
    assert task.notification_error == "no\ufffd"
    assert await tasks.repository.next_notification_at() == tasks.in_seconds(20)
    assert await claim(tasks) == []
    tasks.clock.move(20)
    (claimed,) = await claim(tasks)
    assert claimed.attempt == 1
    assert await tasks.repository.apply_notification(
        outcome(claimed, status="dead_letter", failure_count=5, error="gone")
    )
    assert (await tasks.get("t1")).notification_status == "dead_letter"
    assert await tasks.repository.next_notification_at() is None


@pytest.mark.req("NOTE-1", "NOTE-3")
async def test_a_newer_event_replaces_one_under_way_and_starts_afresh(tasks: Tasks) -> None:
    await tasks.track("t1", outcome=ASKING, attention=AttentionKind.INPUT_REQUIRED, fingerprint="q")
    (old,) = await claim(tasks)
    await tasks.repository.apply_notification(
        outcome(old, status="pending", attempt=2, failure_count=3, error="x", next_at=tasks.clock.now())
    )
    (old,) = await claim(tasks)
    assert old.attempt == 2
    ended = tasks.polled(
        await tasks.claim_one(), COMPLETED, attention=AttentionKind.TERMINAL, attention_fingerprint="end"
    )
    await tasks.apply(ended)

    assert not await tasks.repository.apply_notification(outcome(old))

    (new,) = await claim(tasks)
    assert (new.version, new.attempt, new.task.notification_failure_count) == (2, 0, 0)
    assert new.task.notification_error is None


@pytest.mark.req("NOTE-3")
async def test_a_deleted_thread_s_notifications_are_dead_letters(tasks: Tasks) -> None:
    await tasks.finish("t1")
    await tasks.finish("t2", COMPLETED)
    await tasks.track(
        "t3", user_id="bob", outcome=COMPLETED, attention=AttentionKind.TERMINAL, fingerprint="e"
    )
    await tasks.track("t4")
    (first, *_) = await claim(tasks, limit=1)

    await tasks.repository.delete_thread("alice", "thread-1")

    statuses = {number: (await tasks.get(f"t{number}")).notification_status for number in (1, 2, 3, 4)}
    assert statuses == {1: "dead_letter", 2: "dead_letter", 3: "pending", 4: "none"}
    assert not await tasks.repository.apply_notification(outcome(first))
    assert (await tasks.get("t4")).status == "working"


@pytest.mark.req("NOTE-2", "TASK-19")
async def test_notifiers_side_by_side_claim_every_event_once(tasks: Tasks) -> None:
    for number in range(30):
        await tasks.finish(f"t{number}")

    batches = await asyncio.gather(*(claim(tasks, limit=4) for _ in range(10)))

    claimed = [one.task.task_id for batch in batches for one in batch]
    assert len(claimed) == len(set(claimed))
    assert len(claimed) + len(await claim(tasks, limit=100)) == 30
