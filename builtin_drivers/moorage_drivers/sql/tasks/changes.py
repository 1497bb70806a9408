"""What is to change in rows of tasks, as objects of the document that `CHANGE_COLUMNS` describes."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from moorage.contract import AttentionKind, TaskOutcome, TaskUpdate
from moorage_drivers.sql.jsontext import ascii_json, maybe_storable, storable
from moorage_drivers.sql.tasks.statements import PLAIN_COLUMNS
from moorage_drivers.sql.times import maybe_micros, micros

Change = dict[str, Any]


_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def encoded(change: Mapping[str, Any]) -> str:
    """One object of a document, in ASCII. Raises for a value that no database stores."""
    return _encode(change)


def document(objects: Iterable[str]) -> str:
    """The document of objects that are `encoded` already."""
    return f"[{','.join(objects)}]"


def update_change(update: TaskUpdate) -> Change:
    """The row's change by the holder of a lease. Raises for a value that no database stores."""
    change: Change = {"c_id": update.task_id, "c_token": update.token}
    if update.next_poll_at is not None:
        change["c_poll"] = micros(update.next_poll_at)
    if update.polled_at is not None:
        change["c_polled"] = micros(update.polled_at)
    if update.poll_error_count is not None:
        change["c_errors"] = update.poll_error_count
    if update.poll_error is not None:
        change["c_poll_error"] = storable(update.poll_error)
    if update.tracking_degraded is not None:
        change["c_degraded"] = update.tracking_degraded
    if update.cancel_attempted:
        change["c_tried"] = True
        change["c_cancel"] = maybe_micros(update.next_cancel_at)
        change["c_cancel_error"] = maybe_storable(update.cancel_error)
        change["c_attempts"] = update.cancel_attempt_count
    if update.outcome is not None:
        change.update(outcome_change(update.outcome))
    if update.attention is not None:
        change.update(event_change(update.attention, update.attention_fingerprint))
    return change


def is_plain(change: Change) -> bool:
    """Whether the change is no more than a poll that found the work going on."""
    return change.keys() <= PLAIN_COLUMNS


def outcome_change(outcome: TaskOutcome) -> Change:
    change: Change = {"c_status": outcome.status.value}
    if outcome.input_required_json is not None:
        change["c_request"] = ascii_json(outcome.input_required_json)
    if outcome.error is not None:
        change["c_error"] = storable(outcome.error)
    if outcome.status.terminal:
        change |= {
            "c_over": True,
            "c_code": maybe_storable(outcome.error_code),
            "c_result": ascii_json(outcome.result_json),
            "c_preview": maybe_storable(outcome.result_preview),
            "c_cut": outcome.result_truncated,
            "c_artifact": ascii_json(outcome.result_artifact_json),
        }
    return change


def event_change(kind: AttentionKind | None, fingerprint: str | None) -> Change:
    if kind is None:
        return {}
    return {"c_kind": str(kind), "c_print": maybe_storable(fingerprint) or str(kind)}


def failure_change(error: str, code: str) -> Change:
    """An intent that failed: terminal, with an event of its own (TASK-22)."""
    change: Change = {"c_status": "failed", "c_over": True}
    change |= {"c_error": maybe_storable(error), "c_code": maybe_storable(code)}
    return change | event_change(AttentionKind.TERMINAL, f"failed:{code}")
