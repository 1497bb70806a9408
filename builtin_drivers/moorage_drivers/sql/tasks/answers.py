"""Answers to tasks that require input, recorded before they are sent (TASK-16)."""

from sqlalchemy import Connection, Row, select, text, update
from sqlalchemy.exc import IntegrityError

from moorage.contract import AnswerRecord, AnswerState, Conflict, NotFound
from moorage_drivers.sql.database import Database, bound_now
from moorage_drivers.sql.jsontext import ascii_json, from_json, storable
from moorage_drivers.sql.models import task_answers, tasks

_WAITING = "input_required"


class Answers:
    """The answers' part of the task repository."""

    def __init__(self, database: Database) -> None:
        self._database = database
        dialect, now = database.dialect, database.dialect.now
        self._due_now = text(
            f"UPDATE tasks SET next_poll_at = {now}, updated_at = {now}, "  # noqa: S608
            f"due_at = {dialect.earlier(now, 'next_cancel_at')} "
            "WHERE task_id = :task_id AND finished_at IS NULL AND intent_until IS NULL"
        )

    async def record(self, task_id: str, answer_id: str, response_json: str) -> tuple[AnswerRecord, bool]:
        answer = {
            "task_id": task_id,
            "answer_id": storable(answer_id),
            "state": "recorded",
            "response": ascii_json(response_json),
            "created_at": self._database.clock.now(),
        }

        def unit(connection: Connection) -> tuple[AnswerRecord, bool]:
            known = _find(connection, task_id, answer_id)
            if known is not None:
                return _record(known), False
            _check_waiting(connection, task_id, lock=not self._database.dialect.sqlite)
            connection.execute(task_answers.insert(), answer)
            made = _find(connection, task_id, answer_id)
            assert made is not None
            return _record(made), True

        try:
            return await self._database.write(unit)
        except IntegrityError:
            # Another replica recorded the same answer at the same moment.
            row = await self._database.read(lambda connection: _find(connection, task_id, answer_id))
            if row is None:
                raise
            return _record(row), False

    async def finish(self, task_id: str, answer_id: str, state: AnswerState, error: str | None) -> bool:
        ended = (
            update(task_answers)
            .where(
                task_answers.c.task_id == task_id,
                task_answers.c.answer_id == storable(answer_id),
                task_answers.c.state == "recorded",
            )
            .values(state=state, error=error)
        )

        def unit(connection: Connection) -> bool:
            if connection.execute(ended).rowcount == 0:
                return False
            connection.execute(self._due_now, {"task_id": task_id, **bound_now(self._database)})
            return True

        finished = await self._database.write(unit)
        if finished:
            self._database.signals.tell("tasks")
        return finished


def _check_waiting(connection: Connection, task_id: str, *, lock: bool) -> None:
    query = select(tasks.c.status).where(tasks.c.task_id == task_id)
    status = connection.scalar(query.with_for_update() if lock else query)
    if status is None:
        raise NotFound(f"there is no task {task_id!r}")
    if status != _WAITING:
        raise Conflict(f"the task is {status}: it requires no input")


def _find(connection: Connection, task_id: str, answer_id: str) -> "Row[tuple[object, ...]] | None":
    return connection.execute(
        select(task_answers).where(
            task_answers.c.task_id == task_id, task_answers.c.answer_id == storable(answer_id)
        )
    ).first()


def _record(row: "Row[tuple[object, ...]]") -> AnswerRecord:
    return AnswerRecord(
        task_id=row.task_id,
        answer_id=row.answer_id,
        state=row.state,
        response=from_json(row.response),
        error=row.error,
        created_at=row.created_at,
    )
