"""`EventRepository` on SQL: a log per thread."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from moorage.contract import RunEvent
from moorage.contract.empty import EMPTY
from moorage_drivers.sql.database import Database
from moorage_drivers.sql.models import events, threads


class SqlEvents:
    """Events on a `Database`. The thread's row hands out the numbers, so they are committed in order."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def append(
        self,
        thread_id: str,
        *,
        event_type: str,
        run_id: str | None = None,
        task_id: str | None = None,
        metadata: Mapping[str, Any] = EMPTY,
        payload: Any = None,
    ) -> RunEvent | None:
        numbered = (
            update(threads)
            .where(threads.c.thread_id == thread_id)
            .values(event_seq=threads.c.event_seq + 1)
            .returning(threads.c.event_seq)
        )
        row = {
            "thread_id": thread_id,
            "run_id": run_id,
            "task_id": task_id,
            "event_type": event_type,
            "metadata": dict(metadata),
            "payload": payload,
            "created_at": self._database.clock.now(),
        }

        def unit(connection: Connection) -> RunEvent | None:
            seq = connection.scalar(numbered)
            if seq is None:
                return None
            connection.execute(insert(events), {**row, "seq": seq})
            return RunEvent(seq=seq, **row)

        event = await self._database.write(unit)
        if event is not None:
            self._database.signals.tell("events", thread_id)
        return event

    async def list(
        self,
        thread_id: str,
        *,
        run_id: str | None = None,
        event_types: Sequence[str] | None = None,
        task_id: str | None = None,
        after_seq: int = 0,
        limit: int = 100,
    ) -> Sequence[RunEvent]:
        query = (
            select(events)
            .where(events.c.thread_id == thread_id, events.c.seq > after_seq)
            .order_by(events.c.seq)
            .limit(limit)
        )
        if run_id is not None:
            query = query.where(events.c.run_id == run_id)
        if task_id is not None:
            query = query.where(events.c.task_id == task_id)
        if event_types is not None:
            query = query.where(events.c.event_type.in_(list(event_types)))
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return [_record(row) for row in rows]


def _record(row: "Row[Any]") -> RunEvent:
    return RunEvent(
        seq=row.seq,
        thread_id=row.thread_id,
        run_id=row.run_id,
        task_id=row.task_id,
        event_type=row.event_type,
        metadata=row.metadata,
        payload=row.payload,
        created_at=row.created_at,
    )
