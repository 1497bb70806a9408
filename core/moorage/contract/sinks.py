"""Notification sinks: where a task's attention events go (NOTE)."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from moorage.contract.tasks import TaskStatus

if TYPE_CHECKING:
    from moorage.contract.gateway import GatewayContext


class AttentionKind(StrEnum):
    """Why a task wants attention (TASK-13)."""

    INPUT_REQUIRED = "input_required"
    TRACKING_DEGRADED = "tracking_degraded"
    TERMINAL = "terminal"


@dataclass(frozen=True, slots=True)
class Notification:
    """One attention event on its way to a sink.

    ``delivery_id`` is the same for every repetition of one attempt (TASK-19, NOTE-2): a sink that has
    seen it does nothing twice. The strings come from servers and are untrusted (NOTE-5).
    """

    delivery_id: str
    task_id: str
    task_name: str
    version: int
    attempt: int
    kind: AttentionKind
    status: TaskStatus
    user_id: str
    thread_id: str | None
    assistant_id: str | None
    server_name: str
    error: str | None = None
    result: Any = None
    result_preview: str | None = None
    result_truncated: bool = False
    result_artifact: Any = None
    input_required: Any = None


class DeliveryState(StrEnum):
    """What became of a delivery."""

    DELIVERED = "delivered"
    PENDING = "pending"
    """Accepted and under way: ask again with the same delivery id. No failure is counted."""
    BUSY = "busy"
    """The target cannot take it now: wait. No failure is counted (NOTE-3)."""
    FAILED = "failed"
    """A recorded failure: back off, next attempt (NOTE-2, NOTE-3)."""
    GONE = "gone"
    """The target does not exist or belongs to somebody else: dead-letter at once (NOTE-3)."""


@dataclass(frozen=True, slots=True)
class DeliveryOutcome:
    """A sink's answer. ``reason`` is shown to operators; no secrets."""

    state: DeliveryState
    reason: str | None = None
    retry_after_seconds: float | None = None


class NotificationSink(Protocol):
    """Delivers attention events; idempotent by ``delivery_id``."""

    async def deliver(self, notification: Notification) -> DeliveryOutcome:
        """Deliver, or tell how a delivery under way is doing. Raising counts as FAILED."""
        ...


@dataclass(frozen=True, slots=True)
class SinkSpec:
    """Contributes a sink. ``primary``: its outcome decides the task's notification status (exactly one
    sink in force may be primary: the one that settings name, ``thread`` by default)."""

    name: str
    build: "Callable[[GatewayContext], NotificationSink | None]"
    """None where settings configure no such sink: it is not in force then."""
