"""Rows of tasks as records."""

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from moorage.contract import AttentionKind, TaskRecord, TaskStatus
from moorage_drivers.sql.jsontext import from_json
from moorage_drivers.sql.times import maybe_moment, moment

# What an active row can have set, in the order that `claimed_record` reads.
ACTIVE_COLUMNS = (
    "task_id",
    "task_name",
    "user_id",
    "thread_id",
    "run_id",
    "assistant_id",
    "server_name",
    "driver",
    "binding",
    "holder",
    "remote_id",
    "status",
    "created_at",
    "updated_at",
    "next_poll_at",
    "last_polled_at",
    "poll_error_count",
    "last_poll_error",
    "tracking_degraded",
    "cancel_requested_at",
    "next_cancel_at",
    "cancel_attempt_count",
    "last_cancel_error",
    "error",
    "error_code",
    "input_required",
    "event_version",
    "event_kind",
    "event_fingerprint",
    "notification_status",
    "notification_attempt",
    "notification_failure_count",
    "notification_error",
)
# What only the end of a task sets.
FINAL_COLUMNS = ("finished_at", "result", "result_preview", "result_truncated", "result_artifact")
ALL_COLUMNS = ACTIVE_COLUMNS + FINAL_COLUMNS


def task_record(row: Sequence[Any]) -> TaskRecord:
    """``row``: at least `ACTIVE_COLUMNS`; with `FINAL_COLUMNS` behind them where a task may have ended."""
    kind = row[27]
    binding, request = row[8], row[25]
    final = row[33:38] if len(row) >= 38 else (None, None, None, False, None)
    return TaskRecord(
        task_id=row[0],
        task_name=row[1],
        user_id=row[2],
        thread_id=row[3],
        run_id=row[4],
        assistant_id=row[5],
        server_name=row[6],
        driver=row[7],
        binding=dict(_binding(binding)),
        holder=row[9],
        remote_id=row[10],
        status=_STATUSES[row[11]],
        created_at=moment(row[12]),
        updated_at=moment(row[13]),
        next_poll_at=maybe_moment(row[14]),
        last_polled_at=maybe_moment(row[15]),
        poll_error_count=row[16],
        last_poll_error=row[17],
        tracking_degraded=bool(row[18]),
        cancel_requested_at=maybe_moment(row[19]),
        next_cancel_at=maybe_moment(row[20]),
        cancel_attempt_count=row[21],
        last_cancel_error=row[22],
        error=row[23],
        error_code=row[24],
        input_required=None if request is None else json.loads(request),
        event_version=row[26],
        event_kind=None if kind is None else AttentionKind(kind),
        event_fingerprint=row[28],
        notification_status=row[29],
        notification_attempt=row[30],
        notification_failure_count=row[31],
        notification_error=row[32],
        finished_at=maybe_moment(final[0]),
        result=from_json(final[1]),
        result_preview=final[2],
        result_truncated=bool(final[3]),
        result_artifact=from_json(final[4]),
    )


@lru_cache(maxsize=1024)
def _binding(text: str) -> dict[str, Any]:
    """The tasks of one tool share their binding, and parsing it would be the larger part of a claim."""
    parsed: dict[str, Any] = json.loads(text)
    return parsed


_STATUSES = {status.value: status for status in TaskStatus}
