"""`TaskRepository` in plain Python: the rules of the contract without a database."""

import asyncio
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from moorage.contract import (
    AnswerRecord,
    AnswerState,
    AttentionKind,
    ClaimedNotification,
    ClaimedTask,
    Clock,
    Conflict,
    NewTask,
    NotFound,
    NotificationUpdate,
    Page,
    RemoteTaskConflict,
    TaskFilter,
    TaskOutcome,
    TaskRecord,
    TaskStatus,
    TaskUpdate,
)


@dataclass
class _Lease:
    token: str
    until: datetime


class MemoryTasks:
    """A reference for the domain's tests; what is durable is tested on the real stores."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tokens = (f"token-{number}" for number in itertools.count(1))
        self.rows: dict[str, TaskRecord] = {}
        self.leases: dict[str, _Lease] = {}
        self.deliveries: dict[str, _Lease] = {}
        self.notify_at: dict[str, datetime] = {}
        self.answers: dict[tuple[str, str], AnswerRecord] = {}
        self.alive: dict[str, datetime] = {}

    def _lease(self, seconds: float) -> _Lease:
        return _Lease(next(self._tokens), self._clock.now() + timedelta(seconds=seconds))

    def _holds(self, leases: Mapping[str, _Lease], task_id: str, token: str) -> bool:
        lease = leases.get(task_id)
        return lease is not None and lease.token == token and lease.until > self._clock.now()

    async def create_intent(self, task: NewTask) -> str:
        await asyncio.sleep(0)
        now = self._clock.now()
        self.rows[task.task_id] = TaskRecord(
            task_id=task.task_id,
            task_name=task.task_name,
            user_id=task.user_id,
            thread_id=task.thread_id,
            run_id=task.run_id,
            assistant_id=task.assistant_id,
            server_name=task.server_name,
            driver=task.driver,
            binding=task.binding,
            remote_id=None,
            status=TaskStatus.SUBMITTED,
            created_at=now,
            updated_at=now,
            holder=task.holder,
        )
        self.leases[task.task_id] = self._lease(task.lease_seconds)
        return self.leases[task.task_id].token

    async def record_handle(
        self,
        task_id: str,
        token: str,
        *,
        remote_id: str,
        outcome: TaskOutcome,
        next_poll_at: datetime | None,
        attention: AttentionKind | None = None,
        attention_fingerprint: str | None = None,
    ) -> bool:
        await asyncio.sleep(0)
        if not self._holds(self.leases, task_id, token) or not self._is_intent(task_id):
            return False
        self._set_remote(task_id, remote_id)
        del self.leases[task_id]
        row = replace(_with(self.rows[task_id], outcome), next_poll_at=next_poll_at)
        self.rows[task_id] = self._attend(self._finish(row), attention, attention_fingerprint)
        return True

    async def fail_intent(
        self, task_id: str, token: str | None, *, error: str, error_code: str, remote_id: str | None = None
    ) -> bool:
        await asyncio.sleep(0)
        if not self._is_intent(task_id):
            return False
        if token is not None and not self._holds(self.leases, task_id, token):
            return False
        if remote_id is not None:
            self._set_remote(task_id, remote_id)
        self._fail(task_id, error, error_code)
        return True

    async def discard_intent(self, task_id: str, token: str) -> bool:
        await asyncio.sleep(0)
        if not self._is_intent(task_id):
            return False
        del self.rows[task_id], self.leases[task_id]
        return True

    async def expire_intents(self) -> int:
        await asyncio.sleep(0)
        now = self._clock.now()
        lapsed = [t for t in self.rows if self._is_intent(t) and self.leases[t].until <= now]
        for task_id in lapsed:
            self._fail(task_id, "whether the server accepted the submit is unknown", "submission_unknown")
        return len(lapsed)

    async def get(self, task_id: str) -> TaskRecord | None:
        await asyncio.sleep(0)
        return self.rows.get(task_id)

    async def list(self, filter: TaskFilter) -> Page[TaskRecord]:  # noqa: A002
        await asyncio.sleep(0)
        rows = [
            row
            for row in reversed(self.rows.values())
            if filter.user_id in (None, row.user_id)
            and filter.thread_id in (None, row.thread_id)
            and (filter.statuses is None or row.status in filter.statuses)
            and filter.name_or_id in (None, row.task_id, row.task_name)
        ]
        return Page(rows[: filter.limit])

    async def claim(
        self, owner: str, *, limit: int, lease_seconds: float, drivers: Sequence[str] | None = None
    ) -> Sequence[ClaimedTask]:
        await asyncio.sleep(0)
        now = self._clock.now()
        due = sorted(
            (at, task_id) for task_id, at in self._due().items() if at <= now and self._may(owner, task_id)
        )
        claims: list[Any] = []
        for _, task_id in due[:limit]:
            lease = self._lease(lease_seconds)
            self.leases[task_id] = lease
            if self.rows[task_id].holder is not None:
                self.rows[task_id] = replace(self.rows[task_id], holder=owner)
            claims.append(
                ClaimedTask(task=self.rows[task_id], token=lease.token, lease_expires_at=lease.until)
            )
        return claims

    async def apply(self, updates: Sequence[TaskUpdate]) -> frozenset[str]:
        await asyncio.sleep(0)
        landed = set()
        for update in updates:
            row = self.rows.get(update.task_id)
            if row is None or row.status.terminal:
                continue
            if not self._holds(self.leases, update.task_id, update.token):
                continue
            del self.leases[update.task_id]
            self.rows[update.task_id] = self._attend(
                self._finish(self._updated(row, update)), update.attention, update.attention_fingerprint
            )
            landed.add(update.task_id)
        return frozenset(landed)

    async def release(self, claims: Mapping[str, str]) -> frozenset[str]:
        await asyncio.sleep(0)
        held = {task_id for task_id, token in claims.items() if self._holds(self.leases, task_id, token)}
        for task_id in held:
            del self.leases[task_id]
        return frozenset(held)

    async def request_cancel(self, task_id: str) -> TaskRecord | None:
        await asyncio.sleep(0)
        row = self.rows.get(task_id)
        if row is not None and not row.status.terminal and row.cancel_requested_at is None:
            now = self._clock.now()
            row = self.rows[task_id] = replace(row, cancel_requested_at=now, next_cancel_at=now)
        return row

    async def record_answer(
        self, task_id: str, answer_id: str, *, response_json: str
    ) -> tuple[AnswerRecord, bool]:
        await asyncio.sleep(0)
        if (known := self.answers.get((task_id, answer_id))) is not None:
            return known, False
        if (row := self.rows.get(task_id)) is None:
            raise NotFound(f"there is no task {task_id!r}")
        if row.status is not TaskStatus.INPUT_REQUIRED:
            raise Conflict(f"the task is {row.status}: it requires no input")
        made = AnswerRecord(
            task_id=task_id,
            answer_id=answer_id,
            state="recorded",
            response=json.loads(response_json),
            created_at=self._clock.now(),
        )
        self.answers[task_id, answer_id] = made
        return made, True

    async def finish_answer(
        self, task_id: str, answer_id: str, *, state: AnswerState, error: str | None = None
    ) -> bool:
        await asyncio.sleep(0)
        answer = self.answers[task_id, answer_id]
        if answer.state != "recorded":
            return False
        self.answers[task_id, answer_id] = replace(answer, state=state, error=error)
        if not self.rows[task_id].status.terminal:
            self.rows[task_id] = replace(self.rows[task_id], next_poll_at=self._clock.now())
        return True

    async def heartbeat(self, owner: str, lease_seconds: float) -> None:
        await asyncio.sleep(0)
        self.alive[owner] = self._clock.now() + timedelta(seconds=lease_seconds)

    async def next_due_at(self) -> datetime | None:
        await asyncio.sleep(0)
        moments = list(self._due().values())
        moments += [lease.until for task_id, lease in self.leases.items() if self._is_intent(task_id)]
        return min(moments, default=None)

    async def claim_notifications(
        self, owner: str, *, limit: int, lease_seconds: float
    ) -> Sequence[ClaimedNotification]:
        await asyncio.sleep(0)
        now = self._clock.now()
        claims: list[Any] = []
        for task_id, at in sorted(self.notify_at.items(), key=lambda item: item[1]):
            lease = self.deliveries.get(task_id)
            if at > now or (lease is not None and lease.until > now) or len(claims) == limit:
                continue
            row = self.rows[task_id]
            lease = self.deliveries[task_id] = self._lease(lease_seconds)
            claims.append(
                ClaimedNotification(
                    task=row,
                    version=row.event_version,
                    attempt=row.notification_attempt,
                    token=lease.token,
                    lease_expires_at=lease.until,
                )
            )
        return claims

    async def apply_notification(self, update: NotificationUpdate) -> bool:
        await asyncio.sleep(0)
        row = self.rows[update.task_id]
        if row.event_version != update.version or not self._holds(
            self.deliveries, update.task_id, update.token
        ):
            return False
        del self.deliveries[update.task_id]
        self.rows[update.task_id] = replace(
            row,
            notification_status=update.status,
            notification_attempt=update.attempt,
            notification_failure_count=update.failure_count,
            notification_error=update.error,
        )
        if update.status == "pending":
            self.notify_at[update.task_id] = update.next_at or self._clock.now()
        else:
            del self.notify_at[update.task_id]
        return True

    async def next_notification_at(self) -> datetime | None:
        await asyncio.sleep(0)
        now = self._clock.now()
        moments = []
        for task_id, at in self.notify_at.items():
            lease = self.deliveries.get(task_id)
            moments.append(lease.until if lease is not None and lease.until > now else at)
        return min(moments, default=None)

    async def purge(self, *, finished_before: datetime, limit: int) -> int:
        await asyncio.sleep(0)
        old = [
            row.task_id
            for row in self.rows.values()
            if row.finished_at is not None
            and row.finished_at < finished_before
            and row.notification_status != "pending"
        ][:limit]
        for task_id in old:
            del self.rows[task_id]
        return len(old)

    async def delete_thread(self, user_id: str, thread_id: str) -> None:
        for task_id in list(self.notify_at):
            row = self.rows[task_id]
            if (row.user_id, row.thread_id) == (user_id, thread_id):
                del self.notify_at[task_id]
                self.rows[task_id] = replace(row, notification_status="dead_letter")

    # --- parts

    def _is_intent(self, task_id: str) -> bool:
        row = self.rows.get(task_id)
        return row is not None and row.remote_id is None and row.status is TaskStatus.SUBMITTED

    def _due(self) -> dict[str, datetime]:
        now, due = self._clock.now(), {}
        for task_id, row in self.rows.items():
            moments = [at for at in (row.next_poll_at, row.next_cancel_at) if at is not None]
            if not moments or row.status.terminal or self._is_intent(task_id):
                continue
            lease = self.leases.get(task_id)
            leased = lease is not None and lease.until > now
            due[task_id] = max(min(moments), lease.until) if leased and lease else min(moments)
        return due

    def _may(self, owner: str, task_id: str) -> bool:
        holder = self.rows[task_id].holder
        alive = holder is not None and self.alive.get(holder, self._clock.now()) > self._clock.now()
        return holder is None or holder == owner or not alive

    def _set_remote(self, task_id: str, remote_id: str) -> None:
        row = self.rows[task_id]
        for other in self.rows.values():
            key = (other.user_id, other.server_name, other.remote_id)
            if other.task_id != task_id and key == (row.user_id, row.server_name, remote_id):
                raise RemoteTaskConflict(other.task_id)
        self.rows[task_id] = replace(row, remote_id=remote_id)

    def _fail(self, task_id: str, error: str, code: str) -> None:
        self.leases.pop(task_id, None)
        row = replace(self.rows[task_id], status=TaskStatus.FAILED, error=error, error_code=code)
        self.rows[task_id] = self._attend(self._finish(row), AttentionKind.TERMINAL, f"failed {error}")

    def _updated(self, row: TaskRecord, update: TaskUpdate) -> TaskRecord:
        if update.outcome is not None:
            row = _with(row, update.outcome)
        changes: dict[str, Any] = {"updated_at": self._clock.now()}
        if update.next_poll_at is not None:
            changes["next_poll_at"] = update.next_poll_at
        if update.polled_at is not None:
            changes["last_polled_at"] = update.polled_at
        if update.poll_error_count is not None:
            changes["poll_error_count"] = update.poll_error_count
            changes["last_poll_error"] = update.poll_error if update.poll_error_count else None
        if update.tracking_degraded is not None or update.poll_error_count == 0:
            changes["tracking_degraded"] = bool(update.tracking_degraded)
        if update.cancel_attempted:
            changes["next_cancel_at"] = update.next_cancel_at
            changes["last_cancel_error"] = update.cancel_error
            changes["cancel_attempt_count"] = update.cancel_attempt_count
        return replace(row, **changes)

    def _finish(self, row: TaskRecord) -> TaskRecord:
        if not row.status.terminal:
            return row
        return replace(row, finished_at=self._clock.now(), next_poll_at=None, next_cancel_at=None)

    def _attend(self, row: TaskRecord, kind: AttentionKind | None, mark: str | None) -> TaskRecord:
        if kind is None or mark == row.event_fingerprint:
            return row
        self.notify_at[row.task_id] = self._clock.now()
        self.deliveries.pop(row.task_id, None)
        return replace(
            row,
            event_version=row.event_version + 1,
            event_kind=kind,
            event_fingerprint=mark,
            notification_status="pending",
            notification_attempt=0,
            notification_failure_count=0,
            notification_error=None,
        )


def _with(row: TaskRecord, outcome: TaskOutcome) -> TaskRecord:
    return replace(
        row,
        status=outcome.status,
        error=outcome.error,
        error_code=outcome.error_code,
        result=_loaded(outcome.result_json),
        result_preview=outcome.result_preview,
        result_truncated=outcome.result_truncated,
        result_artifact=_loaded(outcome.result_artifact_json),
        input_required=_loaded(outcome.input_required_json),
    )


def _loaded(text: str | None) -> Any:
    return None if text is None else json.loads(text)
