"""Listings and retention."""

import pytest
from support.stored_tasks import COMPLETED, Tasks

from moorage.contract import AttentionKind, NotificationUpdate, TaskFilter, TaskStatus


async def ids(tasks: Tasks, **wanted: object) -> list[str]:
    page = await tasks.repository.list(TaskFilter(**wanted))  # type: ignore[arg-type]
    return [task.task_id for task in page.items]


@pytest.mark.req("API-3")
async def test_filters_narrow_and_the_newest_come_first(tasks: Tasks) -> None:
    await tasks.track("t1")
    tasks.clock.move(1)
    await tasks.track("t2", user_id="bob", thread_id="thread-2")
    tasks.clock.move(1)
    await tasks.finish("t3")
    await tasks.intent("t4", task_name="other", thread_id=None)

    assert await ids(tasks) == ["t4", "t3", "t2", "t1"]
    assert await ids(tasks, user_id="alice") == ["t4", "t3", "t1"]
    assert await ids(tasks, thread_id="thread-1") == ["t3", "t1"]
    assert await ids(tasks, user_id="bob", thread_id="thread-1") == []
    assert await ids(tasks, statuses=frozenset({TaskStatus.COMPLETED, TaskStatus.SUBMITTED})) == ["t4", "t3"]
    assert await ids(tasks, statuses=frozenset()) == []
    assert await ids(tasks, name_or_id="count") == ["t3", "t2", "t1"]
    assert await ids(tasks, name_or_id="t2") == ["t2"]


@pytest.mark.req("API-1", "API-3")
async def test_pages_follow_each_other_without_gap_or_repetition(tasks: Tasks) -> None:
    for number in range(7):
        await tasks.track(f"t{number}")
        if number % 2:
            tasks.clock.move(1)
    seen: list[str] = []
    cursor = None
    while True:
        page = await tasks.repository.list(TaskFilter(limit=3, cursor=cursor))
        seen += [task.task_id for task in page.items]
        await tasks.track(f"new-{len(seen)}")
        if (cursor := page.next_cursor) is None:
            break

    assert [name for name in seen if not name.startswith("new")] == [
        f"t{number}" for number in range(6, -1, -1)
    ]
    assert len(seen) == len(set(seen))


@pytest.mark.req("API-1")
@pytest.mark.parametrize("cursor", ["", "!", "bm9wZQ", "WzEsMl0", "é", "eyJhIjoxfQ"])
async def test_a_made_up_cursor_is_refused(tasks: Tasks, cursor: str) -> None:
    with pytest.raises(ValueError, match="cursor"):
        await tasks.repository.list(TaskFilter(cursor=cursor))


@pytest.mark.req("TASK-21", "NOTE-1")
async def test_retention_removes_finished_tasks_but_no_pending_notification(tasks: Tasks) -> None:
    for number in range(3):
        await tasks.finish(f"old-{number}")
    await tasks.track("active")
    claims = await tasks.repository.claim_notifications("x", limit=2, lease_seconds=5)
    for claim in claims:
        delivered = NotificationUpdate(
            task_id=claim.task.task_id,
            token=claim.token,
            version=1,
            status="delivered",
            attempt=0,
            failure_count=0,
        )
        assert await tasks.repository.apply_notification(delivered)
    tasks.clock.move(100)
    await tasks.track("recent", outcome=COMPLETED, attention=AttentionKind.TERMINAL, fingerprint="e")

    before = tasks.in_seconds(-50)
    assert await tasks.repository.purge(finished_before=before, limit=1) == 1
    assert await tasks.repository.purge(finished_before=before, limit=10) == 1
    assert await tasks.repository.purge(finished_before=before, limit=10) == 0

    left = set(await ids(tasks))
    assert {"active", "recent"} < left
    assert len(left) == 3
