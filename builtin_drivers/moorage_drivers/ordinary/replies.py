"""What a server's tools may answer: read strictly, since it is untrusted (ORD-3, ORD-4, ORD-5, TASK-9)."""

from collections.abc import Mapping
from typing import Any

from moorage.contract import (
    ProtocolViolation,
    TaskHandle,
    TaskSnapshot,
    TaskStatus,
    ToolResult,
    TransientDriverError,
)

MAX_DIAGNOSTIC_CHARACTERS = 500
_STATUSES = {
    "running": TaskStatus.WORKING,
    "input_required": TaskStatus.INPUT_REQUIRED,
    "completed": TaskStatus.COMPLETED,
    "failed": TaskStatus.FAILED,
    "cancelled": TaskStatus.CANCELLED,
}


def diagnostic(result: ToolResult) -> str:
    """The first text block of an answer, at most 500 characters of it (ORD-4)."""
    for block in result.content:
        text = block.get("text")
        if block.get("type") == "text" and isinstance(text, str):
            return text[:MAX_DIAGNOSTIC_CHARACTERS]
    return "the tool gave no reason"


def readable_id(structured: object) -> str | None:
    """The task's id, if the answer carries one at all; for a compensation (TASK-23)."""
    value = structured.get("task_id") if isinstance(structured, Mapping) else None
    return value if isinstance(value, str) and value.strip() else None


def id_in_reply(reply: object) -> str | None:
    """The same for a whole JSON-RPC reply that the client library rejected."""
    result = reply.get("result") if isinstance(reply, Mapping) else None
    return readable_id(result.get("structuredContent")) if isinstance(result, Mapping) else None


def submitted(result: ToolResult, where: str) -> TaskHandle:
    """The handle. Raises `ProtocolViolation`, with the remote id where it can be read."""
    remote_id = readable_id(result.structured)
    try:
        snapshot = snapshot_of(result, where)
        if remote_id is None:
            raise ProtocolViolation(f"{where}: the answer has no usable task_id")
    except ProtocolViolation as error:
        raise ProtocolViolation(str(error), remote_id=remote_id, code=error.code) from None
    return TaskHandle(remote_id, snapshot)


def snapshot_of(result: ToolResult, where: str) -> TaskSnapshot:
    """The snapshot. Raises `TransientDriverError` for ``isError``, `ProtocolViolation` for what breaks the
    contract; ``where`` names server and tool."""
    if result.is_error:
        raise TransientDriverError(diagnostic(result))
    answer = result.structured
    if not isinstance(answer, Mapping):
        raise ProtocolViolation(f"{where}: the answer has no structuredContent object")
    if answer.get("error_code") == "task_not_found":
        raise ProtocolViolation(f"{where}: the server no longer knows the task", code="task_not_found")
    status = _STATUSES.get(_text(answer, "status", where, required=True) or "")
    if status is None:
        raise ProtocolViolation(f"{where}: unknown status {str(answer['status'])[:100]!r}")
    artifact = _mapping(answer, "result_artifact", where)
    if artifact is not None and not isinstance(artifact.get("uri"), str):
        raise ProtocolViolation(f"{where}: result_artifact has no uri")
    try:
        return TaskSnapshot(
            status=status,
            remote_id=_text(answer, "task_id", where, required=True),
            result=answer.get("result"),
            result_artifact=artifact,
            error=_text(answer, "error", where),
            error_code=_text(answer, "error_code", where),
            input_required=_mapping(answer, "input_required", where),
            poll_after_seconds=answer.get("poll_after_seconds"),
        )
    except ProtocolViolation as error:
        raise ProtocolViolation(f"{where}: {error}", code=error.code) from None


def _text(answer: Mapping[str, Any], key: str, where: str, *, required: bool = False) -> str | None:
    value = answer.get(key)
    if value is None and not required:
        return None
    if not isinstance(value, str) or (required and not value.strip()):
        raise ProtocolViolation(f"{where}: {key} must be text")
    return value


def _mapping(answer: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any] | None:
    value = answer.get(key)
    if value is not None and not isinstance(value, Mapping):
        raise ProtocolViolation(f"{where}: {key} must be an object")
    return value
