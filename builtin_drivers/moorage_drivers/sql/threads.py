"""`ThreadRepository` on SQL."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from moorage.contract import ThreadRecord
from moorage.contract.empty import EMPTY
from moorage_drivers.sql.database import Database
from moorage_drivers.sql.jsontext import to_json
from moorage_drivers.sql.models import thread_metadata, threads


class SqlThreads:
    """Threads on a `Database`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(
        self, thread_id: str, user_id: str, metadata: Mapping[str, Any]
    ) -> tuple[ThreadRecord, bool]:
        now = self._database.clock.now()
        row = {
            "thread_id": thread_id,
            "user_id": user_id,
            "metadata": dict(metadata),
            "status": "idle",
            "created_at": now,
            "updated_at": now,
        }

        def unit(connection: Connection) -> tuple[ThreadRecord, bool]:
            known = _find(connection, thread_id)
            if known is not None:
                return known, False
            connection.execute(insert(threads), row)
            _index_metadata(connection, thread_id, metadata)
            return _found(connection, thread_id), True

        try:
            return await self._database.write(unit)
        except IntegrityError:
            known = await self.get(thread_id)  # another replica was quicker
            if known is None:
                raise
            return known, False

    async def get(self, thread_id: str) -> ThreadRecord | None:
        return await self._database.read(lambda connection: _find(connection, thread_id))

    async def merge_metadata(self, thread_id: str, metadata: Mapping[str, Any]) -> ThreadRecord | None:
        def unit(connection: Connection) -> ThreadRecord | None:
            known = lock_thread(connection, self._database, thread_id)
            if known is None:
                return None
            merged = {**known.metadata, **metadata}
            connection.execute(
                update(threads)
                .where(threads.c.thread_id == thread_id)
                .values(metadata=merged, updated_at=self._database.clock.now())
            )
            connection.execute(delete(thread_metadata).where(thread_metadata.c.thread_id == thread_id))
            _index_metadata(connection, thread_id, merged)
            return _found(connection, thread_id)

        return await self._database.write(unit)

    async def delete(self, thread_id: str) -> bool:
        statement = delete(threads).where(threads.c.thread_id == thread_id)
        return bool(await self._database.write(lambda connection: connection.execute(statement).rowcount))

    async def search(
        self,
        user_id: str,
        *,
        metadata: Mapping[str, Any] = EMPTY,
        status: str | None = None,
        limit: int = 10,
        offset: int = 0,
    ) -> Sequence[ThreadRecord]:
        query = (
            select(threads)
            .where(threads.c.user_id == user_id)
            .order_by(threads.c.created_at.desc(), threads.c.thread_id.desc())
            .limit(limit)
            .offset(offset)
        )
        if status is not None:
            query = query.where(threads.c.status == status)
        for key, value in metadata.items():
            having = select(thread_metadata.c.thread_id).where(thread_metadata.c.entry == _entry(key, value))
            query = query.where(threads.c.thread_id.in_(having))
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return [_record(row) for row in rows]


def lock_thread(connection: Connection, database: Database, thread_id: str) -> ThreadRecord | None:
    """The row, which nobody else changes before the unit's end."""
    query = select(threads).where(threads.c.thread_id == thread_id)
    row = connection.execute(query if database.dialect.sqlite else query.with_for_update()).first()
    return None if row is None else _record(row)


def _find(connection: Connection, thread_id: str) -> ThreadRecord | None:
    row = connection.execute(select(threads).where(threads.c.thread_id == thread_id)).first()
    return None if row is None else _record(row)


def _found(connection: Connection, thread_id: str) -> ThreadRecord:
    return _record(connection.execute(select(threads).where(threads.c.thread_id == thread_id)).one())


def _index_metadata(connection: Connection, thread_id: str, metadata: Mapping[str, Any]) -> None:
    entries = [{"thread_id": thread_id, "entry": _entry(key, value)} for key, value in metadata.items()]
    if entries:
        connection.execute(insert(thread_metadata), entries)


def _entry(key: str, value: Any) -> str:
    """A digest, since keys and values may be of any size; equal pairs have equal ones."""
    return hashlib.sha256(to_json([key, value]).encode("ascii")).hexdigest()


def _record(row: "Row[Any]") -> ThreadRecord:
    return ThreadRecord(
        thread_id=row.thread_id,
        user_id=row.user_id,
        metadata=row.metadata,
        status=row.status,
        created_at=row.created_at,
        updated_at=row.updated_at,
        last_assistant_id=row.last_assistant_id,
    )
