"""The event-stream sink (NOTE-4), on the event log's contract."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from moorage.contract import AttentionKind, DeliveryState, Notification, RunEvent, TaskStatus, ThreadRecord
from moorage.tasks.event_stream import EventStreamSink

NOW = datetime(2030, 1, 1, tzinfo=UTC)
NOTE = Notification(
    delivery_id="t:1:0",
    task_id="t",
    task_name="report",
    version=1,
    attempt=0,
    kind=AttentionKind.TERMINAL,
    status=TaskStatus.COMPLETED,
    user_id="alice",
    thread_id="t1",
    assistant_id="direct",
    server_name="files",
    result_preview="3 files",
)


class Log:
    """The thread's events; knows one thread, which is Alice's."""

    def __init__(self) -> None:
        self.rows: list[RunEvent] = []

    async def get(self, thread_id: str) -> ThreadRecord | None:
        if thread_id != "t1":
            return None
        return ThreadRecord(
            thread_id="t1", user_id="alice", metadata={}, status="idle", created_at=NOW, updated_at=NOW
        )

    async def append(self, thread_id: str, **fields: Any) -> RunEvent | None:
        row = RunEvent(seq=len(self.rows) + 1, thread_id=thread_id, run_id=None, created_at=NOW, **fields)
        self.rows.append(row)
        return row

    async def list(self, thread_id: str, **narrowed: Any) -> list[RunEvent]:
        return [row for row in self.rows if row.task_id == narrowed["task_id"]]


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def sink(log: Log) -> EventStreamSink:
    return EventStreamSink(log, log)  # type: ignore[arg-type]


@pytest.mark.req("NOTE-4", "TASK-19")
async def test_an_event_becomes_one_row_however_often_it_is_delivered(
    sink: EventStreamSink, log: Log
) -> None:
    for _ in range(3):
        assert (await sink.deliver(NOTE)).state is DeliveryState.DELIVERED
    await sink.deliver(replace(NOTE, delivery_id="t:2:0", version=2))

    assert [row.metadata["delivery_id"] for row in log.rows] == ["t:1:0", "t:2:0"]
    assert log.rows[0].event_type == "task.attention"
    assert log.rows[0].payload["result_preview"] == "3 files"


@pytest.mark.req("NOTE-3")
@pytest.mark.parametrize(
    "note", [replace(NOTE, thread_id=None), replace(NOTE, thread_id="gone"), replace(NOTE, user_id="bob")]
)
async def test_a_thread_that_is_gone_or_somebody_elses_gets_nothing(
    sink: EventStreamSink, log: Log, note: Notification
) -> None:
    assert (await sink.deliver(note)).state is DeliveryState.GONE
    assert log.rows == []
