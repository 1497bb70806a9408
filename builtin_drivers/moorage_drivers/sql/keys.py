"""`KeyRepository` on SQL (API-2)."""

import uuid
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from moorage.contract import ApiKeyRecord, Conflict
from moorage_drivers.sql.database import Database
from moorage_drivers.sql.failures import violated_key
from moorage_drivers.sql.models import api_keys

_NAME_KEYS = ("uq_api_keys_live_name", "api_keys.name")


class SqlKeys:
    """API keys on a `Database`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, *, name: str, user_id: str, roles: frozenset[str], key_hash: str) -> ApiKeyRecord:
        values = {
            "key_id": uuid.uuid4().hex,
            "name": name,
            "user_id": user_id,
            "roles": sorted(roles),
            "key_hash": key_hash,
            "created_at": self._database.clock.now(),
        }
        statement = insert(api_keys).values(values).returning(api_keys)
        try:
            row = await self._database.write(lambda connection: connection.execute(statement).one())
        except IntegrityError as error:
            if violated_key(error) in _NAME_KEYS:
                raise Conflict(f"there is a key {name!r} already") from error
            raise
        return _record(row)

    async def find(self, key_hash: str) -> ApiKeyRecord | None:
        query = select(api_keys).where(api_keys.c.key_hash == key_hash, api_keys.c.revoked_at.is_(None))
        row = await self._database.read(lambda connection: connection.execute(query).first())
        return None if row is None else _record(row)

    async def list(self) -> Sequence[ApiKeyRecord]:
        query = select(api_keys).order_by(api_keys.c.created_at, api_keys.c.key_id)
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return [_record(row) for row in rows]

    async def revoke(self, key_id_or_name: str) -> ApiKeyRecord | None:
        statement = (
            update(api_keys)
            .where(
                or_(api_keys.c.key_id == key_id_or_name, api_keys.c.name == key_id_or_name),
                api_keys.c.revoked_at.is_(None),
            )
            .values(revoked_at=self._database.clock.now())
            .returning(api_keys)
        )
        row = await self._database.write(lambda connection: connection.execute(statement).first())
        return None if row is None else _record(row)

    async def roles_of(self, user_id: str) -> frozenset[str]:
        query = select(api_keys.c.roles).where(api_keys.c.user_id == user_id, api_keys.c.revoked_at.is_(None))
        found = await self._database.read(lambda connection: connection.scalars(query).all())
        return frozenset(role for roles in found for role in roles)


def _record(row: "Row[Any]") -> ApiKeyRecord:
    return ApiKeyRecord(
        key_id=row.key_id,
        name=row.name,
        user_id=row.user_id,
        roles=frozenset(row.roles),
        created_at=row.created_at,
        revoked_at=row.revoked_at,
    )
