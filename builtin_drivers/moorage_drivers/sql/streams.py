# ruff: noqa: S608 (fragments are constants of ours; values are always bound)
"""`StreamRepository` on SQL.

The rows of a copy hang on the token of those who ask for it: when the last of them has left, both go at once,
and what is still on its way to that copy finds nowhere to go.
"""

import uuid
from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, select, text
from sqlalchemy.exc import IntegrityError

from moorage.contract import StreamRow
from moorage_drivers.sql.database import Database, bound_now
from moorage_drivers.sql.jsontext import ascii_json, maybe_storable, storable
from moorage_drivers.sql.models import stream_rows
from moorage_drivers.sql.times import span

_ADD = text(
    "INSERT INTO stream_rows (token, number, event, mode, data) "
    "VALUES (:token, :number, :event, :mode, :data) ON CONFLICT (token, number) DO NOTHING"
)


class SqlStreams:
    """Copies of streams on a `Database`; their time is that of the leases."""

    def __init__(self, database: Database) -> None:
        self._database = database
        now = database.dialect.now
        self._ask = text(
            "INSERT INTO followers (run_id, token, until) "
            f"VALUES (:run_id, :token, {now} + CAST(:span AS BIGINT)) "
            "ON CONFLICT (run_id) DO UPDATE SET until = excluded.until RETURNING token"
        )
        self._asked = text(f"SELECT run_id, token FROM followers WHERE until > {now}")
        self._clear = text(f"DELETE FROM followers WHERE until <= {now}")

    async def ask(self, run_id: str, seconds: float) -> str | None:
        values = {
            "run_id": storable(run_id),
            "token": uuid.uuid4().hex,
            "span": span(seconds),
            **bound_now(self._database),
        }
        try:
            token = await self._database.write(
                lambda connection: connection.execute(self._ask, values).scalar_one(), single=True
            )
        except IntegrityError:
            return None
        self._database.signals.tell("followers")
        return str(token)

    async def asked(self) -> Mapping[str, str]:
        values = bound_now(self._database)
        rows = await self._database.read(lambda connection: connection.execute(self._asked, values).all())
        return {row.run_id: row.token for row in rows}

    async def append(self, token: str, rows: Sequence[StreamRow], *, thread_id: str) -> bool:
        values = [
            {
                "token": token,
                "number": row.number,
                "event": storable(row.event),
                "mode": maybe_storable(row.mode),
                "data": ascii_json(row.data_json),
            }
            for row in rows
        ]

        def unit(connection: Connection) -> None:
            connection.execute(_ADD, values)

        try:
            await self._database.write(unit)
        except IntegrityError:
            return False
        self._database.signals.tell("streams", thread_id)
        return True

    async def list(self, token: str, *, after: int, limit: int) -> Sequence[StreamRow]:
        query = (
            select(stream_rows)
            .where(stream_rows.c.token == token, stream_rows.c.number > after)
            .order_by(stream_rows.c.number)
            .limit(limit)
        )
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return [
            StreamRow(number=row.number, event=row.event, mode=row.mode, data_json=row.data) for row in rows
        ]

    async def clear(self) -> int:
        values = bound_now(self._database)
        return await self._database.write(
            lambda connection: connection.execute(self._clear, values).rowcount, single=True
        )
