"""`MemoRepository` on SQL: values as canonical JSON, so that equality is equality of texts."""

from typing import Any

from sqlalchemy import Executable, delete, select, text, update

from moorage_drivers.sql.database import Database
from moorage_drivers.sql.jsontext import from_json, storable, to_json
from moorage_drivers.sql.models import memos

_INSERT = "INSERT INTO memos (name, value) VALUES (:name, :value) ON CONFLICT (name) DO "
_PUT = text(_INSERT + "UPDATE SET value = excluded.value")
_ADD = text(_INSERT + "NOTHING")


class SqlMemos:
    """Memos on a `Database`. None is no value: putting it removes the memo."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, name: str) -> Any:
        query = select(memos.c.value).where(memos.c.name == name)
        return from_json(await self._database.read(lambda connection: connection.scalar(query)))

    async def put(self, name: str, value: Any) -> None:
        if value is None:
            gone = delete(memos).where(memos.c.name == name)
            await self._database.write(lambda connection: connection.execute(gone).rowcount, single=True)
            return
        values = {"name": storable(name), "value": to_json(value)}
        await self._database.write(lambda connection: connection.execute(_PUT, values).rowcount, single=True)

    async def swap(self, name: str, expected: Any, value: Any) -> bool:
        if expected is None and value is None:
            return await self.get(name) is None
        statement = _swap(name, expected, value)
        return await self._database.write(lambda connection: connection.execute(statement).rowcount > 0)


def _swap(name: str, expected: Any, value: Any) -> Executable:
    if expected is None:
        return _ADD.bindparams(name=storable(name), value=to_json(value))
    present = (memos.c.name == name, memos.c.value == to_json(expected))
    if value is None:
        return delete(memos).where(*present)
    return update(memos).where(*present).values(value=to_json(value))
