"""What becomes of a row after a reply: states, counters, times, attention (TASK-7, 8, 9, 12, 13, 17, 24)."""

from dataclasses import replace
from datetime import datetime, timedelta

from moorage.contract.clock import Clock
from moorage.contract.sinks import AttentionKind
from moorage.contract.stores import ClaimedTask, TaskRecord, TaskUpdate
from moorage.contract.tasks import TaskStatus
from moorage.settings import TaskSettings
from moorage.tasks.asking import Reply
from moorage.tasks.backoff import Backoff
from moorage.tasks.bounds import attention_of, fingerprint, request_fingerprint


class Judge:
    """Pure decisions on `TaskRecord` and `Reply`; every time counts from now, when the call has ended."""

    def __init__(self, settings: TaskSettings, clock: Clock, jitter: float = 0.0) -> None:
        self._settings = settings
        self._clock = clock
        self._backoff = Backoff(settings.poll_interval_seconds, settings.backoff_cap_seconds, jitter)

    def due(self, task: TaskRecord) -> tuple[bool, bool]:
        """Whether a poll, and whether a cancel, is due."""
        now = self._clock.now()
        cancel = task.next_cancel_at is not None and task.next_cancel_at <= now
        poll = task.next_poll_at is not None and task.next_poll_at <= now
        # The database's clock may run ahead of ours: what it found due is due.
        return poll or not cancel, cancel

    def untouched(self, claim: ClaimedTask) -> TaskUpdate:
        return TaskUpdate(task_id=claim.task.task_id, token=claim.token)

    def postponed(self, claim: ClaimedTask) -> TaskUpdate:
        """No call was made, and none is due for a poll interval; nothing is counted."""
        task = claim.task
        later = self._clock.now() + timedelta(seconds=self._settings.poll_interval_seconds)
        update = replace(self.untouched(claim), next_poll_at=later)
        return update if task.next_cancel_at is None else _cancel_moved(task, update, later)

    def after_poll(self, claim: ClaimedTask, reply: Reply) -> TaskUpdate:
        task, now, outcome = claim.task, self._clock.now(), reply.outcome
        if outcome is None:
            return self._after_failed_poll(claim, reply.error, now)
        kind, mark = attention_of(outcome)
        if kind is AttentionKind.INPUT_REQUIRED and not _is_news(task, mark):
            kind = mark = None
        return TaskUpdate(
            task_id=task.task_id,
            token=claim.token,
            outcome=outcome,
            next_poll_at=None if reply.terminal else now + timedelta(seconds=self._interval(reply)),
            polled_at=now,
            poll_error_count=0,
            attention=kind,
            attention_fingerprint=mark,
        )

    def after_cancel(self, claim: ClaimedTask, update: TaskUpdate, reply: Reply) -> TaskUpdate:
        """``update`` with what the cancel came to: a terminal reply, a mere acknowledgement, an error.

        A terminal outcome that a poll has already put there stays (TASK-17).
        """
        attempts = claim.task.cancel_attempt_count + 1
        made = replace(update, cancel_attempted=True, cancel_attempt_count=attempts)
        if reply.outcome is None:
            retry = self._clock.now() + timedelta(seconds=self._backoff.delay(attempts))
            return replace(made, cancel_error=reply.error, next_cancel_at=None if reply.final else retry)
        already_over = update.outcome is not None and update.outcome.status.terminal
        if not reply.terminal or already_over:
            return made
        kind, mark = attention_of(reply.outcome)
        return replace(
            made, outcome=reply.outcome, next_poll_at=None, attention=kind, attention_fingerprint=mark
        )

    def orphan(self, claim: ClaimedTask) -> TaskUpdate:
        """The driver is not installed: the task keeps its state and comes back at the cap (TASK-24)."""
        task, now = claim.task, self._clock.now()
        later = now + timedelta(seconds=self._settings.backoff_cap_seconds)
        error = (
            f"the task driver {task.driver!r} is not installed here; "
            "install the plugin that provides it and restart"
        )
        update = replace(self._after_failed_poll(claim, error, now), next_poll_at=later)
        return update if task.next_cancel_at is None else _cancel_moved(task, update, later, error)

    def _after_failed_poll(self, claim: ClaimedTask, error: str | None, now: datetime) -> TaskUpdate:
        task = claim.task
        failures = task.poll_error_count + 1
        degraded = failures >= self._settings.degraded_after_errors
        crossing = degraded and not task.tracking_degraded
        return TaskUpdate(
            task_id=task.task_id,
            token=claim.token,
            next_poll_at=now + timedelta(seconds=self._backoff.delay(failures)),
            polled_at=now,
            poll_error=error,
            poll_error_count=failures,
            tracking_degraded=True if degraded else None,
            attention=AttentionKind.TRACKING_DEGRADED if crossing else None,
            # Every episode is an event of its own; within one, the flag on the row keeps it single.
            attention_fingerprint=fingerprint("degraded", task.event_version, now) if crossing else None,
        )

    def _interval(self, reply: Reply) -> float:
        if reply.hint_seconds is not None:
            return reply.hint_seconds
        waiting = reply.outcome is not None and reply.outcome.status is TaskStatus.INPUT_REQUIRED
        settings = self._settings
        return settings.input_required_interval_seconds if waiting else settings.poll_interval_seconds


def _cancel_moved(
    task: TaskRecord, update: TaskUpdate, later: datetime, error: str | None = None
) -> TaskUpdate:
    """``update`` with the next cancel call at another time, and no attempt counted."""
    return replace(
        update,
        cancel_attempted=True,
        cancel_attempt_count=task.cancel_attempt_count,
        cancel_error=error or task.last_cancel_error,
        next_cancel_at=later,
    )


def _is_news(task: TaskRecord, mark: str | None) -> bool:
    return task.status is not TaskStatus.INPUT_REQUIRED or request_fingerprint(task.input_required) != mark
