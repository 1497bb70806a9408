"""`TaskRepository` on SQL (TASK)."""

import logging
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, TextClause, select, text
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from moorage.contract import (
    AnswerRecord,
    AnswerState,
    AttentionKind,
    ClaimedNotification,
    ClaimedTask,
    NewTask,
    NotificationUpdate,
    Page,
    RemoteTaskConflict,
    SignalKind,
    StoreUnavailable,
    TaskFilter,
    TaskOutcome,
    TaskRecord,
    TaskUpdate,
)
from moorage_drivers.sql.database import Database, bound_now
from moorage_drivers.sql.failures import violated_key
from moorage_drivers.sql.jsontext import maybe_storable, storable, to_json
from moorage_drivers.sql.models import REMOTE_KEY, tasks
from moorage_drivers.sql.tasks.answers import Answers
from moorage_drivers.sql.tasks.changes import (
    Change,
    document,
    encoded,
    event_change,
    failure_change,
    is_plain,
    outcome_change,
    update_change,
)
from moorage_drivers.sql.tasks.pages import list_tasks
from moorage_drivers.sql.tasks.rows import ACTIVE_COLUMNS, ALL_COLUMNS, task_record
from moorage_drivers.sql.tasks.statements import task_statements
from moorage_drivers.sql.times import maybe_micros, maybe_moment, micros, moment, span

_log = logging.getLogger(__name__)

_Rows = list[Any]
_Encoded = tuple[str, str]
_COLUMNS = [tasks.c[name] for name in ALL_COLUMNS]
_DUE, _LEASE = len(ACTIVE_COLUMNS), len(ACTIVE_COLUMNS) + 1
_NOTIFY, _NOTIFY_LEASE = len(ALL_COLUMNS), len(ALL_COLUMNS) + 1
_REMOTE_KEYS = (REMOTE_KEY, "tasks.user_id, tasks.server_name, tasks.remote_id")
_REMEMBERED_SECONDS = 86_400.0  # of replicas that died without a farewell
_LAPSED = "the gateway stopped during the submission; whether the server accepted it is unknown"


class SqlTasks:
    """Durable tasks on a `Database`.

    Leases end by the database's clock on PostgreSQL and by the caller's on SQLite.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = task_statements(database.dialect)
        self._answers = Answers(database)
        self._has_beaten = False
        self._texts: dict[str, TextClause] = {}

    # --- submissions

    async def create_intent(self, task: NewTask) -> str:
        token = _new_token()
        values = {
            "task_id": task.task_id,
            "task_name": task.task_name,
            "user_id": task.user_id,
            "thread_id": task.thread_id,
            "run_id": task.run_id,
            "assistant_id": task.assistant_id,
            "server_name": task.server_name,
            "driver": task.driver,
            "binding": to_json(task.binding),
            "holder": task.holder,
            "token": token,
            "lease": span(task.lease_seconds),
        }
        await self._write(self._sql.create_intent, values)
        return token

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
        change: Change = {"c_id": task_id, "c_token": token, "c_remote": storable(remote_id)}
        change |= outcome_change(outcome) | event_change(attention, attention_fingerprint)
        change["c_poll"] = maybe_micros(next_poll_at)
        return await self._change_intent(self._sql.record_handle, change)

    async def fail_intent(
        self, task_id: str, token: str | None, *, error: str, error_code: str, remote_id: str | None = None
    ) -> bool:
        change: Change = {"c_id": task_id, "c_token": token, "c_remote": maybe_storable(remote_id)}
        return await self._change_intent(self._sql.fail_intent, change | failure_change(error, error_code))

    async def discard_intent(self, task_id: str, token: str) -> bool:
        return bool(await self._write(self._sql.discard_intent, {"task_id": task_id, "token": token}))

    async def expire_intents(self) -> int:
        change = failure_change(_LAPSED, "submission_unknown")
        expired = len(await self._write(self._sql.expire_intents, {"doc": document([encoded(change)])}))
        self._tell("notifications", expired)
        return expired

    async def _change_intent(self, sql: str, change: Change) -> bool:
        try:
            landed = bool(await self._write(sql, {"doc": document([encoded(change)])}))
        except IntegrityError as error:
            if violated_key(error) not in _REMOTE_KEYS:
                raise
            raise RemoteTaskConflict(await self._owner_of_remote(change)) from error
        self._tell("notifications" if change.get("c_over") else "tasks", landed)
        return landed

    async def _owner_of_remote(self, change: Change) -> str:
        mine = (
            select(tasks.c.user_id, tasks.c.server_name).where(tasks.c.task_id == change["c_id"]).subquery()
        )
        query = (
            select(tasks.c.task_id)
            .join(mine, (tasks.c.user_id == mine.c.user_id) & (tasks.c.server_name == mine.c.server_name))
            .where(tasks.c.remote_id == change["c_remote"])
        )
        return str(await self._database.read(lambda connection: connection.scalar(query)))

    # --- reading

    async def get(self, task_id: str) -> TaskRecord | None:
        query = select(*_COLUMNS).where(tasks.c.task_id == task_id)
        row = await self._database.read(lambda connection: connection.execute(query).first())
        return None if row is None else task_record(row)

    async def list(self, filter: TaskFilter) -> Page[TaskRecord]:  # noqa: A002
        return await list_tasks(self._database, filter)

    async def next_due_at(self) -> datetime | None:
        return await self._earliest(self._sql.next_due)

    async def next_notification_at(self) -> datetime | None:
        return await self._earliest(self._sql.next_notification)

    async def _earliest(self, sql: str) -> datetime | None:
        statement, values = self._text(sql), dict(bound_now(self._database))
        row = await self._database.read(lambda connection: connection.execute(statement, values).one())
        return maybe_moment(min((value for value in row if value is not None), default=None))

    # --- polling

    async def claim(
        self, owner: str, *, limit: int, lease_seconds: float, drivers: Sequence[str] | None = None
    ) -> Sequence[ClaimedTask]:
        token = _new_token()
        values = {"owner": owner, "token": token, "lease": span(lease_seconds), "count": limit}
        sql = self._sql.claim
        if drivers is not None:
            sql, values["drivers"] = self._sql.claim_of_drivers, to_json(list(drivers))
        rows = await self._write(sql, values)
        rows.sort(key=lambda row: row[_DUE])
        return [
            ClaimedTask(task=task_record(row), token=token, lease_expires_at=moment(row[_LEASE]))
            for row in rows
        ]

    async def apply(self, updates: Sequence[TaskUpdate]) -> frozenset[str]:
        plain: list[_Encoded] = []
        rich: list[_Encoded] = []
        for update in updates:
            _encode_into(plain, rich, update)
        landed = await self._apply(self._sql.apply_plain, plain)
        if rich:
            landed |= await self._apply(self._sql.apply, rich)
            news = any(update.attention is not None and update.task_id in landed for update in updates)
            self._tell("notifications", news)
        return landed

    async def _apply(self, sql: str, changes: Sequence[_Encoded]) -> frozenset[str]:
        if not changes:
            return frozenset()
        try:
            rows = await self._write(sql, {"doc": document(text for _, text in changes)})
        except StoreUnavailable:
            raise
        except SQLAlchemyError as error:
            if len(changes) == 1:
                task_id = changes[0][0]
                _log.error("the database refused the update of task %s: %s", task_id, type(error).__name__)
                return frozenset()
        else:
            return frozenset(row[0] for row in rows)
        # The database refused the batch: whose fault it was shows one by one (TASK-10).
        landed: frozenset[str] = frozenset()
        for change in changes:
            landed |= await self._apply(sql, [change])
        return landed

    async def release(self, claims: Mapping[str, str]) -> frozenset[str]:
        if not claims:
            return frozenset()
        held = (encoded({"h_id": task_id, "h_token": token}) for task_id, token in claims.items())
        freed = frozenset(row[0] for row in await self._write(self._sql.release, {"doc": document(held)}))
        self._tell("tasks", freed)
        return freed

    async def request_cancel(self, task_id: str) -> TaskRecord | None:
        rows = await self._write(self._sql.request_cancel, {"task_id": task_id})
        self._tell("tasks", rows)
        return task_record(rows[0]) if rows else await self.get(task_id)

    async def heartbeat(self, owner: str, lease_seconds: float) -> None:
        if lease_seconds <= 0:
            await self._write(self._sql.farewell, {"owner": owner})
            self._tell("tasks", True)
            return
        await self._write(self._sql.heartbeat, {"owner": owner, "lease": span(lease_seconds)})
        if not self._has_beaten:
            self._has_beaten = True
            await self._write(self._sql.forget_replicas, {"age": span(_REMEMBERED_SECONDS)})

    # --- answers

    async def record_answer(
        self, task_id: str, answer_id: str, *, response_json: str
    ) -> tuple[AnswerRecord, bool]:
        return await self._answers.record(task_id, answer_id, response_json)

    async def finish_answer(
        self, task_id: str, answer_id: str, *, state: AnswerState, error: str | None = None
    ) -> bool:
        return await self._answers.finish(task_id, answer_id, state, error)

    # --- notifications

    async def claim_notifications(
        self, owner: str, *, limit: int, lease_seconds: float
    ) -> Sequence[ClaimedNotification]:
        token = _new_token()
        values = {"owner": owner, "token": token, "lease": span(lease_seconds), "count": limit}
        rows = await self._write(self._sql.claim_notifications, values)
        rows.sort(key=lambda row: row[_NOTIFY])
        return [_claimed_notification(row, token) for row in rows]

    async def apply_notification(self, update: NotificationUpdate) -> bool:
        values = {
            "task_id": update.task_id,
            "token": update.token,
            "version": update.version,
            "status": update.status,
            "attempt": update.attempt,
            "failures": update.failure_count,
            "error": update.error,
            "next_at": maybe_micros(update.next_at),
        }
        return bool(await self._write(self._sql.apply_notification, values))

    async def delete_thread(self, user_id: str, thread_id: str) -> None:
        values = {"user_id": user_id, "thread_id": thread_id}
        await self._write(self._sql.delete_thread, values)

    async def purge(self, *, finished_before: datetime, limit: int) -> int:
        values = {"before": micros(finished_before), "count": limit}
        return len(await self._write(self._sql.purge, values))

    # --- parts

    async def _write(self, sql: str, values: Mapping[str, Any]) -> _Rows:
        """One statement; its returned rows."""
        # What names a row may come from a URL: an odd name matches nothing, and breaks nothing (BOUND-4).
        clean = {name: storable(v) if isinstance(v, str) else v for name, v in values.items()}
        statement, bound = self._text(sql), {**clean, **bound_now(self._database)}

        def unit(connection: Connection) -> _Rows:
            result = connection.execute(statement, bound)
            return [*result.all()] if result.returns_rows else []

        return await self._database.write(unit, single=True)

    def _tell(self, kind: SignalKind, changed: object) -> None:
        if changed:
            self._database.signals.tell(kind)

    def _text(self, sql: str) -> TextClause:
        made = self._texts.get(sql)
        if made is None:
            made = self._texts[sql] = text(sql)
        return made


def _new_token() -> str:
    return uuid.uuid4().hex


def _encode_into(plain: list[_Encoded], rich: list[_Encoded], update: TaskUpdate) -> None:
    """Neither takes an update with a value that cannot be stored at all; its siblings go on (TASK-10)."""
    try:
        change = update_change(update)
        (plain if is_plain(change) else rich).append((update.task_id, encoded(change)))
    except (TypeError, ValueError, OverflowError, AttributeError) as error:
        _log.error("the update of task %s cannot be stored: %s", update.task_id, type(error).__name__)


def _claimed_notification(row: Sequence[Any], token: str) -> ClaimedNotification:
    task = task_record(row)
    return ClaimedNotification(
        task=task,
        version=task.event_version,
        attempt=task.notification_attempt,
        token=token,
        lease_expires_at=moment(row[_NOTIFY_LEASE]),
    )
