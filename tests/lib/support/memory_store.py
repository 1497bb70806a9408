"""A store in memory, for tests of what lies above stores. It is not durable and knows no tasks."""

import builtins
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from moorage.contract import (
    ApiKeyRecord,
    Conflict,
    NotFound,
    RunEvent,
    RunRecord,
    RunStatus,
    StoreSignal,
    ThreadBusy,
    ThreadRecord,
)
from moorage_api.auth.keys import key_hash, new_key


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass
class MemoryKeys:
    """A `KeyRepository`."""

    records: dict[str, ApiKeyRecord] = field(default_factory=dict, repr=False)

    async def create(self, *, name: str, user_id: str, roles: frozenset[str], key_hash: str) -> ApiKeyRecord:
        if any(one.name == name and one.revoked_at is None for one in self.records.values()):
            raise Conflict(f"there is a key {name!r} already")
        number = len(self.records)
        record = ApiKeyRecord(key_id=f"k{number}", name=name, user_id=user_id, roles=roles, created_at=_now())
        self.records[key_hash] = record
        return record

    async def find(self, key_hash: str) -> ApiKeyRecord | None:
        record = self.records.get(key_hash)
        return record if record is not None and record.revoked_at is None else None

    async def list(self) -> list[ApiKeyRecord]:
        return list(self.records.values())

    async def revoke(self, key_id_or_name: str) -> ApiKeyRecord | None:
        for digest, one in self.records.items():
            if key_id_or_name in (one.key_id, one.name) and one.revoked_at is None:
                self.records[digest] = replace(one, revoked_at=_now())
                return self.records[digest]
        return None

    async def roles_of(self, user_id: str) -> frozenset[str]:
        live = [one.roles for one in self.records.values() if one.user_id == user_id and not one.revoked_at]
        return frozenset().union(*live)

    async def issue(self, user_id: str, *roles: str) -> str:
        """A fresh key of that user."""
        key = new_key()
        name = f"{user_id}-{len(self.records)}"
        await self.create(name=name, user_id=user_id, roles=frozenset(roles), key_hash=key_hash(key))
        return key


@dataclass
class MemoryThreads:
    """A `ThreadRepository`."""

    store: "MemoryStore"
    rows: dict[str, ThreadRecord] = field(default_factory=dict)

    async def create(
        self, thread_id: str, user_id: str, metadata: Mapping[str, Any]
    ) -> tuple[ThreadRecord, bool]:
        if thread_id in self.rows:
            return self.rows[thread_id], False
        self.rows[thread_id] = ThreadRecord(
            thread_id=thread_id,
            user_id=user_id,
            metadata=dict(metadata),
            status="idle",
            created_at=_now(),
            updated_at=_now(),
        )
        return self.rows[thread_id], True

    async def get(self, thread_id: str) -> ThreadRecord | None:
        return self.rows.get(thread_id)

    async def merge_metadata(self, thread_id: str, metadata: Mapping[str, Any]) -> ThreadRecord | None:
        row = self.rows.get(thread_id)
        if row is not None:
            merged = {**row.metadata, **metadata}
            row = self.rows[thread_id] = replace(row, metadata=merged, updated_at=_now())
        return row

    async def delete(self, thread_id: str) -> bool:
        self.store.runs.rows = {k: v for k, v in self.store.runs.rows.items() if v.thread_id != thread_id}
        self.store.events.rows.pop(thread_id, None)
        return self.rows.pop(thread_id, None) is not None

    async def search(
        self,
        user_id: str,
        *,
        metadata: Mapping[str, Any] | None = None,
        status: str | None = None,
        limit: int = 10,
        offset: int = 0,
    ) -> Sequence[ThreadRecord]:
        wanted = (metadata or {}).items()
        found = [
            row
            for row in reversed(self.rows.values())
            if row.user_id == user_id
            and (status is None or row.status == status)
            and all(row.metadata.get(key) == value for key, value in wanted)
        ]
        return found[offset : offset + limit]

    def settle(self, thread_id: str) -> None:
        if (row := self.rows.get(thread_id)) is not None:
            busy = any(run.thread_id == thread_id for run in self.store.runs.active())
            self.rows[thread_id] = replace(row, status="busy" if busy else "idle")


@dataclass
class MemoryRuns:
    """A `RunRepository`."""

    store: "MemoryStore"
    rows: dict[str, RunRecord] = field(default_factory=dict)

    def active(self) -> builtins.list[RunRecord]:
        return [run for run in self.rows.values() if not run.status.terminal]

    async def create(
        self, run: RunRecord, *, exclusive: bool, lease_seconds: float = 60.0
    ) -> tuple[RunRecord, bool]:
        if run.run_id in self.rows:
            return self.rows[run.run_id], False
        if run.thread_id not in self.store.threads.rows:
            raise NotFound("there is no such thread")
        if exclusive and any(one.thread_id == run.thread_id for one in self.active()):
            raise ThreadBusy("the thread has an active run")
        self.rows[run.run_id] = run
        self.store.threads.settle(run.thread_id)
        return run, True

    async def get(self, run_id: str) -> RunRecord | None:
        return self.rows.get(run_id)

    async def list(
        self, thread_id: str, *, status: RunStatus | None = None, limit: int = 10, offset: int = 0
    ) -> Sequence[RunRecord]:
        found = [
            run
            for run in reversed(self.rows.values())
            if run.thread_id == thread_id and status in (None, run.status)
        ]
        return found[offset : offset + limit]

    async def begin(self, run_id: str, owner: str) -> bool:
        run = self.rows.get(run_id)
        if run is None or run.status is not RunStatus.PENDING or run.owner != owner:
            return False
        others = (other for other in self.rows.values() if other.thread_id == run.thread_id)
        if any(other.status is RunStatus.RUNNING for other in others):
            return False
        self.rows[run_id] = replace(run, status=RunStatus.RUNNING, updated_at=_now())
        return True

    async def transition(
        self, run_id: str, *, expected: frozenset[RunStatus], to: RunStatus, error: str | None = None
    ) -> bool:
        run = self.rows.get(run_id)
        if run is None or run.status not in expected:
            return False
        self.rows[run_id] = replace(run, status=to, error=error, updated_at=_now())
        self.store.threads.settle(run.thread_id)
        return True

    async def heartbeat(self, owner: str, run_ids: Sequence[str], lease_seconds: float) -> frozenset[str]:
        return frozenset(run.run_id for run in self.active() if run.run_id in run_ids)

    async def take_over(self, owner: str, *, lease_seconds: float, limit: int = 100) -> Sequence[RunRecord]:
        return []

    async def delete(self, run_id: str) -> bool:
        run = self.rows.get(run_id)
        if run is None or not run.status.terminal:
            return False
        del self.rows[run_id]
        return True


@dataclass
class MemoryEvents:
    """An `EventRepository`."""

    store: "MemoryStore"
    rows: dict[str, builtins.list[RunEvent]] = field(default_factory=dict)

    async def append(
        self,
        thread_id: str,
        *,
        event_type: str,
        run_id: str | None = None,
        task_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        payload: Any = None,
    ) -> RunEvent | None:
        if thread_id not in self.store.threads.rows:
            return None
        rows = self.rows.setdefault(thread_id, [])
        event = RunEvent(
            seq=len(rows) + 1,
            thread_id=thread_id,
            run_id=run_id,
            task_id=task_id,
            event_type=event_type,
            metadata=dict(metadata or {}),
            payload=payload,
            created_at=_now(),
        )
        rows.append(event)
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
        found = [
            row
            for row in self.rows.get(thread_id, [])
            if row.seq > after_seq
            and run_id in (None, row.run_id)
            and task_id in (None, row.task_id)
            and (event_types is None or row.event_type in event_types)
        ]
        return found[:limit]


class MemoryStore:
    """A `Store`, not durable."""

    durable = False

    def __init__(self) -> None:
        self.keys = MemoryKeys()
        self.threads = MemoryThreads(self)
        self.runs = MemoryRuns(self)
        self.events = MemoryEvents(self)
        self.broken: Exception | None = None

    def watch(self, heard: Callable[[StoreSignal], None]) -> AbstractAsyncContextManager[None]:
        """Gives no signals: they are hints."""
        return nullcontext()

    async def ping(self) -> None:
        if self.broken is not None:
            raise self.broken

    def dump(self) -> str:
        """Everything that is kept."""
        return repr((self.threads.rows, self.runs.rows, self.events.rows))
