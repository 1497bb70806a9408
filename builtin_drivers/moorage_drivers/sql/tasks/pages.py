"""Listing tasks, page by page, newest first."""

import base64
import binascii
import json
from typing import Any

from sqlalchemy import Select, and_, or_, select

from moorage.contract import Page, TaskFilter, TaskRecord
from moorage_drivers.sql.database import Database
from moorage_drivers.sql.models import tasks
from moorage_drivers.sql.tasks.rows import ALL_COLUMNS, task_record
from moorage_drivers.sql.times import micros

_COLUMNS = [tasks.c[name] for name in ALL_COLUMNS]
_MOST_IN_A_PAGE = 1_000


async def list_tasks(database: Database, wanted: TaskFilter) -> Page[TaskRecord]:
    """Raises `ValueError` for a cursor that no page gave out."""
    limit = max(1, min(wanted.limit, _MOST_IN_A_PAGE))
    query = _query(wanted).limit(limit + 1)
    rows = await database.read(lambda connection: connection.execute(query).all())
    items = [task_record(row) for row in rows[:limit]]
    return Page(items, _cursor(items[-1]) if len(rows) > limit else None)


def _query(wanted: TaskFilter) -> Select[*tuple[Any, ...]]:
    query = select(*_COLUMNS).order_by(tasks.c.created_at.desc(), tasks.c.task_id.desc())
    if wanted.user_id is not None:
        query = query.where(tasks.c.user_id == wanted.user_id)
    if wanted.thread_id is not None:
        query = query.where(tasks.c.thread_id == wanted.thread_id)
    if wanted.statuses is not None:
        query = query.where(tasks.c.status.in_(sorted(str(status) for status in wanted.statuses)))
    if wanted.name_or_id is not None:
        query = query.where(or_(tasks.c.task_id == wanted.name_or_id, tasks.c.task_name == wanted.name_or_id))
    if wanted.cursor is not None:
        created, task_id = _position(wanted.cursor)
        older = and_(tasks.c.created_at == created, tasks.c.task_id < task_id)
        query = query.where(or_(tasks.c.created_at < created, older))
    return query


def _cursor(last: TaskRecord) -> str:
    position = json.dumps([micros(last.created_at), last.task_id])
    return base64.urlsafe_b64encode(position.encode()).decode().rstrip("=")


def _position(cursor: str) -> tuple[int, str]:
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        created, task_id = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        if isinstance(created, int) and isinstance(task_id, str):
            return created, task_id
    except (ValueError, TypeError, binascii.Error):
        pass
    raise ValueError("the cursor is not one that a listing gave out")
