"""One delivery of one attention event, and what its outcome makes of the row (NOTE-1 to NOTE-3)."""

import asyncio
import math
from dataclasses import dataclass
from datetime import timedelta

from moorage.accounts import Account
from moorage.contract.clock import Clock
from moorage.contract.errors import MoorageError, PluginError
from moorage.contract.sinks import (
    AttentionKind,
    DeliveryOutcome,
    DeliveryState,
    Notification,
    NotificationSink,
)
from moorage.contract.stores import ClaimedNotification, NotificationStatus, NotificationUpdate, TaskRecord
from moorage.process_exit import EXITS
from moorage.settings import TaskSettings
from moorage.tasks.asking import Redact
from moorage.tasks.backoff import Backoff
from moorage.tasks.calls import SelfCancelled
from moorage.tasks.observing import Observe, unobserved
from moorage.tasks.text import bounded_error, describe
from moorage.tasks.timing import HINT_CAP_SECONDS

MOST_FAILURES = 5
_FIRST_RETRY_SECONDS = 5.0
_ASK_AGAIN_SECONDS = 1.0
_BUSY_SECONDS = 2.0


def delivery_id(task_id: str, version: int, attempt: int) -> str:
    """The same for every repetition of one attempt, on any replica (NOTE-2, TASK-19)."""
    return f"{task_id}:{version}:{attempt}"


def notification_of(task: TaskRecord, version: int, attempt: int) -> Notification:
    """The event as sinks get it."""
    return Notification(
        delivery_id=delivery_id(task.task_id, version, attempt),
        task_id=task.task_id,
        task_name=task.task_name,
        version=version,
        attempt=attempt,
        kind=task.event_kind or AttentionKind.TERMINAL,
        status=task.status,
        user_id=task.user_id,
        thread_id=task.thread_id,
        assistant_id=task.assistant_id,
        server_name=task.server_name,
        error=task.last_poll_error if task.event_kind is AttentionKind.TRACKING_DEGRADED else task.error,
        result=task.result,
        result_preview=task.result_preview,
        result_truncated=task.result_truncated,
        result_artifact=task.result_artifact,
        input_required=task.input_required,
    )


@dataclass(frozen=True, slots=True)
class Delivery:
    """How a delivery ended. ``unsure``: the sink may have taken it, so the attempt must not change."""

    outcome: DeliveryOutcome
    unsure: bool = False


class Courier:
    """Delivers to one sink, whatever it does in answer (PLUG-7)."""

    def __init__(
        self,
        name: str,
        sink: NotificationSink,
        redact: Redact,
        observe: Observe = unobserved,
        account: Account | None = None,
    ) -> None:
        self._account = account or Account()
        self._name = name
        self._sink = sink
        self._redact = redact
        self._observe = observe

    async def deliver(self, notification: Notification) -> Delivery:
        """Never raises but for a true cancellation and a process exit."""
        about = {"task_id": notification.task_id, "delivery_id": notification.delivery_id}
        with self._observe("deliver", self._name, about) as ended:
            delivery = await self._deliver(notification)
            state = delivery.outcome.state
            ended("ok" if state is DeliveryState.DELIVERED else state.value)
            return delivery

    async def _deliver(self, notification: Notification) -> Delivery:
        try:
            with self._account.call():
                outcome = await self._sink.deliver(notification)
            if not isinstance(outcome, DeliveryOutcome) or not isinstance(outcome.state, DeliveryState):
                raise PluginError(
                    f"answered with {type(outcome).__name__}, not a DeliveryOutcome", plugin=self._name
                )
            return Delivery(outcome)
        except EXITS:
            raise
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                raise
            return self.unanswered(describe(SelfCancelled()))
        except BaseException as exc:
            return self.unanswered(str(exc) if isinstance(exc, MoorageError) else describe(exc))

    def unanswered(self, reason: str) -> Delivery:
        """A failure that leaves open whether the sink took the event: it counts, and the next try carries
        the same delivery id, so that whoever did take it does nothing twice (NOTE-2)."""
        text = self._redact(bounded_error(f"sink {self._name!r}: {reason}"))
        self._account.told(text)
        return Delivery(DeliveryOutcome(DeliveryState.FAILED, text), unsure=True)


class Ledger:
    """Turns a `Delivery` into what the row becomes."""

    def __init__(self, settings: TaskSettings, clock: Clock, redact: Redact, jitter: float = 0.0) -> None:
        self._clock = clock
        self._redact = redact
        first = min(_FIRST_RETRY_SECONDS, settings.backoff_cap_seconds)
        self._backoff = Backoff(first, settings.backoff_cap_seconds, jitter)

    def entry(self, claim: ClaimedNotification, delivery: Delivery) -> NotificationUpdate:
        outcome = delivery.outcome
        failures = claim.task.notification_failure_count
        match outcome.state:
            case DeliveryState.DELIVERED:
                return self._update(claim, "delivered", claim.attempt, failures)
            case DeliveryState.PENDING:
                return self._wait(claim, outcome, _ASK_AGAIN_SECONDS)
            case DeliveryState.BUSY:
                return self._wait(claim, outcome, _BUSY_SECONDS)
            case DeliveryState.GONE:
                reason = outcome.reason or "the target is gone"
                return self._update(claim, "dead_letter", claim.attempt, failures, reason)
        return self._failed(claim, delivery, failures + 1)

    def given_back(self, claim: ClaimedNotification) -> NotificationUpdate:
        """The claim ends with nothing counted and is due at once."""
        return self._wait(claim, DeliveryOutcome(DeliveryState.PENDING), 0.0)

    def _wait(
        self, claim: ClaimedNotification, outcome: DeliveryOutcome, usual_seconds: float
    ) -> NotificationUpdate:
        """Nothing is counted, and the next try asks with the same delivery id (NOTE-3)."""
        task = claim.task
        return self._update(
            claim,
            "pending",
            claim.attempt,
            task.notification_failure_count,
            task.notification_error,
            _asked_delay(outcome.retry_after_seconds) or usual_seconds,
        )

    def _failed(self, claim: ClaimedNotification, delivery: Delivery, failures: int) -> NotificationUpdate:
        reason = delivery.outcome.reason or "the sink reported a failure without saying why"
        if failures >= MOST_FAILURES:
            return self._update(claim, "dead_letter", claim.attempt, failures, reason)
        delay = max(self._backoff.delay(failures), _asked_delay(delivery.outcome.retry_after_seconds) or 0.0)
        attempt = claim.attempt if delivery.unsure else claim.attempt + 1
        return self._update(claim, "pending", attempt, failures, reason, delay)

    def _update(
        self,
        claim: ClaimedNotification,
        status: NotificationStatus,
        attempt: int,
        failures: int,
        error: str | None = None,
        delay_seconds: float | None = None,
    ) -> NotificationUpdate:
        return NotificationUpdate(
            task_id=claim.task.task_id,
            token=claim.token,
            version=claim.version,
            status=status,
            attempt=attempt,
            failure_count=failures,
            error=None if error is None else self._redact(bounded_error(error)),
            next_at=None if delay_seconds is None else self._clock.now() + timedelta(seconds=delay_seconds),
        )


def _asked_delay(seconds: float | None) -> float | None:
    """A sink's wish, where it is one: positive, finite, at most a day."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    return min(float(seconds), HINT_CAP_SECONDS) if math.isfinite(seconds) and seconds > 0 else None
