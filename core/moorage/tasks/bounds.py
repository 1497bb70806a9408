"""A remote's snapshot in the bounded form that may be stored (BOUND), and its fingerprint (NOTE-1)."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from moorage.contract.errors import ProtocolViolation
from moorage.contract.sinks import AttentionKind
from moorage.contract.stores import TaskOutcome
from moorage.contract.tasks import TaskSnapshot, TaskStatus
from moorage.settings import TaskSettings
from moorage.tasks.text import bounded_error, cut

PAYLOAD_LIMIT_BYTES = 65_536
"""``input_required`` and ``result_artifact``, each (BOUND-2)."""
ID_LIMIT_CHARACTERS = 255
SERVER_NAME_LIMIT_CHARACTERS = 128
CODE_LIMIT_CHARACTERS = 100


def to_outcome(snapshot: TaskSnapshot, settings: TaskSettings) -> TaskOutcome:
    """The storable form of a snapshot. Raises `ProtocolViolation` for what may not be stored at all."""
    artifact = _payload("result_artifact", snapshot.result_artifact)
    request = _payload("input_required", snapshot.input_required)
    status = snapshot.status
    if not status.terminal:
        return TaskOutcome(
            status=status,
            input_required_json=request if status is TaskStatus.INPUT_REQUIRED else None,
        )
    result, preview, truncated = _result(snapshot.result, settings)
    error = snapshot.error
    if error is None and status is TaskStatus.FAILED:
        error = snapshot.status_message or "the server reported a failure without saying why"
    return TaskOutcome(
        status=status,
        error=None if error is None else bounded_error(error),
        error_code=_code(snapshot.error_code),
        result_json=result,
        result_preview=preview,
        result_truncated=truncated,
        result_artifact_json=artifact,
    )


def protocol_failure(violation: ProtocolViolation, message: str | None = None) -> TaskOutcome:
    """The permanent failure that a protocol violation makes of a task (TASK-9)."""
    return TaskOutcome(
        status=TaskStatus.FAILED,
        error=bounded_error(message if message is not None else violation),
        error_code=_code(violation.code) or "protocol_violation",
    )


def attention_of(outcome: TaskOutcome) -> tuple[AttentionKind | None, str | None]:
    """The attention event that an outcome is by itself, with its fingerprint (TASK-13, NOTE-1)."""
    if outcome.status.terminal:
        return AttentionKind.TERMINAL, fingerprint(
            outcome.status,
            outcome.error,
            outcome.error_code,
            outcome.result_json,
            outcome.result_preview,
            outcome.result_artifact_json,
        )
    if outcome.status is TaskStatus.INPUT_REQUIRED:
        return AttentionKind.INPUT_REQUIRED, request_fingerprint(
            json.loads(outcome.input_required_json or "null")
        )
    return None, None


def request_fingerprint(request: Any) -> str:
    """The fingerprint of an ``input_required`` payload; the order of its keys does not count."""
    return fingerprint(TaskStatus.INPUT_REQUIRED, json.dumps(request, sort_keys=True, default=_plain))


def fingerprint(*parts: object) -> str:
    """The same for the same event, whatever process computes it."""
    text = json.dumps([None if part is None else str(part) for part in parts])
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def serialise(name: str, value: Any) -> str:
    """JSON in ASCII: escapes carry NUL and lone surrogates safely through any database.

    Raises `ProtocolViolation`, naming ``name``, for what is no JSON (NaN and infinity included).
    """
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"), default=_plain)
    except (TypeError, ValueError, RecursionError) as exc:
        raise ProtocolViolation(f"{name} is not valid JSON: {cut(str(exc), 200)}") from exc


def _payload(name: str, value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise ProtocolViolation(f"{name} must be an object")
    text = serialise(name, value)
    if _too_large(text, value, PAYLOAD_LIMIT_BYTES):
        raise ProtocolViolation(f"{name} is larger than {PAYLOAD_LIMIT_BYTES} bytes")
    return text


def _result(value: Any, settings: TaskSettings) -> tuple[str | None, str | None, bool]:
    if value is None:
        return None, None, False
    text = serialise("result", value)
    limit = settings.result_limit_bytes
    preview = cut(value if isinstance(value, str) else _readable(value), settings.preview_characters)
    if _too_large(text, value, limit):
        return None, preview, True
    return text, preview, False


def _too_large(text: str, value: Any, limit_bytes: int) -> bool:
    # Escapes only ever inflate, so the real size matters only where the escaped one is over.
    return len(text) > limit_bytes and len(_readable(value).encode("utf-8", "surrogatepass")) > limit_bytes


def _readable(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} is no JSON value")


def _code(value: object) -> str | None:
    return None if value is None else cut(str(value), CODE_LIMIT_CHARACTERS)
