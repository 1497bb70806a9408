"""Tasks as API, CLI and agents see them (API-3): never with the remote id, the binding or a lease."""

from datetime import UTC, datetime
from typing import Any

from moorage.contract.stores import AnswerRecord, TaskRecord


def list_row(task: TaskRecord) -> dict[str, Any]:
    """One row of a listing, JSON-compatible; times are ISO 8601 in UTC."""
    return {
        "task_id": task.task_id,
        "task_name": task.task_name,
        "server_name": task.server_name,
        "driver": task.driver,
        "status": task.status.value,
        "created_at": _iso(task.created_at),
        "updated_at": _iso(task.updated_at),
        "error": task.error,
        "tracking_degraded": task.tracking_degraded,
        "cancel_requested": task.cancel_requested_at is not None,
    }


def detail(task: TaskRecord) -> dict[str, Any]:
    """A `list_row` and all else that may be shown of one task."""
    return {
        **list_row(task),
        "last_polled_at": _iso(task.last_polled_at),
        "last_poll_error": task.last_poll_error,
        "last_cancel_error": task.last_cancel_error,
        "cancel_attempt_count": task.cancel_attempt_count,
        "notification_status": task.notification_status,
        "notification_error": task.notification_error,
        "notification_attempt_count": _deliveries(task),
        "result": task.result,
        "result_preview": task.result_preview,
        "result_truncated": task.result_truncated,
        "result_artifact": task.result_artifact,
        "input_required": task.input_required,
    }


def answer_row(answer: AnswerRecord) -> dict[str, Any]:
    """What became of an answer (TASK-16)."""
    return {
        "task_id": answer.task_id,
        "answer_id": answer.answer_id,
        "state": answer.state,
        "error": answer.error,
        "created_at": _iso(answer.created_at),
    }


def _deliveries(task: TaskRecord) -> int:
    """Deliveries of the present event whose end is known."""
    return task.notification_failure_count + (task.notification_status == "delivered")


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
