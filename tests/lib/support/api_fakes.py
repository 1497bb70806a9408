"""A gateway made of memory, for tests of the HTTP layer alone."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from moorage.contract import ApiKeyRecord, Conflict
from moorage_api.auth.keys import key_hash, new_key


@dataclass
class MemoryKeys:
    """A `KeyRepository`."""

    records: dict[str, ApiKeyRecord] = field(default_factory=dict)

    async def create(self, *, name: str, user_id: str, roles: frozenset[str], key_hash: str) -> ApiKeyRecord:
        if any(one.name == name and one.revoked_at is None for one in self.records.values()):
            raise Conflict(f"there is a key {name!r} already")
        record = ApiKeyRecord(
            key_id=f"k{len(self.records)}",
            name=name,
            user_id=user_id,
            roles=roles,
            created_at=datetime.now(UTC),
        )
        self.records[key_hash] = record
        return record

    async def find(self, key_hash: str) -> ApiKeyRecord | None:
        record = self.records.get(key_hash)
        return record if record is not None and record.revoked_at is None else None

    async def list(self) -> list[ApiKeyRecord]:
        return list(self.records.values())

    async def issue(self, user_id: str, *roles: str) -> str:
        """A fresh key of that user."""
        key = new_key()
        await self.create(
            name=f"{user_id}-{len(self.records)}",
            user_id=user_id,
            roles=frozenset(roles),
            key_hash=key_hash(key),
        )
        return key


@dataclass
class MemoryStore:
    keys: MemoryKeys = field(default_factory=MemoryKeys)
    broken: Exception | None = None
    durable: bool = True

    async def ping(self) -> None:
        if self.broken is not None:
            raise self.broken


@dataclass
class NoHost:
    reports: tuple[Any, ...] = ()

    def authenticators(self) -> list[Any]:
        return []


class NoTools:
    """A `ToolSource` without servers."""

    resets = 0

    async def tools(self, context: Any) -> list[Any]:
        return []

    async def servers(self, *, probe: bool = False) -> list[Any]:
        return []

    async def reset(self) -> None:
        self.resets += 1


@dataclass
class FakeGateway:
    """What the routes of these tests touch, and no more."""

    store: MemoryStore = field(default_factory=MemoryStore)
    host: Any = field(default_factory=NoHost)
    context: Any = None
    tools: NoTools = field(default_factory=NoTools)
    tasks: Any = None
    tasks_unavailable: str | None = "no task driver is installed"
    opened: int = 0
    closed: int = 0

    @asynccontextmanager
    async def open(self) -> AsyncIterator["FakeGateway"]:
        self.opened += 1
        try:
            yield self
        finally:
            self.closed += 1
