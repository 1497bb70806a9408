"""A `Store` of threads, runs, events and keys in plain Python: the contract without a database."""

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from moorage.contract import (
    ApiKeyRecord,
    Clock,
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

ACTIVE = (RunStatus.PENDING, RunStatus.RUNNING)


class MemoryStore:
    """``durable`` is true, so that what needs a durable store works; only restarts do not survive."""

    durable = True

    def __init__(self, clock: Clock, tasks: Any = None) -> None:
        self.clock = clock
        self.threads = _Threads(self)
        self.runs = _Runs(self)
        self.events = _Events(self)
        self.keys = MemoryKeys()
        self.tasks = tasks if tasks is not None else _Tasks()
        self.memos = None
        self.streams = None
        self.broken: Exception | None = None

    def watch(self, heard: Callable[[StoreSignal], None]) -> AbstractAsyncContextManager[None]:
        """Gives no signals: they are hints."""
        return nullcontext()

    async def ping(self) -> None:
        if self.broken is not None:
            raise self.broken

    def dump(self) -> str:
        """All that is stored, as text."""
        return repr((self.threads.rows, self.runs.rows, self.events.rows, self.tasks))


@dataclass
class MemoryKeys:
    """A `KeyRepository`."""

    records: dict[str, ApiKeyRecord] = field(default_factory=dict, repr=False)

    async def create(self, *, name: str, user_id: str, roles: frozenset[str], key_hash: str) -> ApiKeyRecord:
        if any(one.name == name and one.revoked_at is None for one in self.records.values()):
            raise Conflict(f"there is a key {name!r} already")
        number = len(self.records)
        record = ApiKeyRecord(
            key_id=f"k{number}", name=name, user_id=user_id, roles=roles, created_at=datetime.now(UTC)
        )
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
                self.records[digest] = replace(one, revoked_at=datetime.now(UTC))
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


class _Tasks:
    def __init__(self) -> None:
        self.deleted: list[tuple[str, str]] = []

    async def delete_thread(self, user_id: str, thread_id: str) -> None:
        self.deleted.append((user_id, thread_id))


class _Threads:
    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self.rows: dict[str, ThreadRecord] = {}

    async def create(
        self, thread_id: str, user_id: str, metadata: Mapping[str, Any]
    ) -> tuple[ThreadRecord, bool]:
        if thread_id in self.rows:
            return self.rows[thread_id], False
        now = self.store.clock.now()
        self.rows[thread_id] = ThreadRecord(
            thread_id=thread_id,
            user_id=user_id,
            metadata=copy.deepcopy(dict(metadata)),
            status="idle",
            created_at=now,
            updated_at=now,
        )
        return self.rows[thread_id], True

    async def get(self, thread_id: str) -> ThreadRecord | None:
        return self.rows.get(thread_id)

    async def merge_metadata(self, thread_id: str, metadata: Mapping[str, Any]) -> ThreadRecord | None:
        if thread_id not in self.rows:
            return None
        row = self.rows[thread_id]
        self.rows[thread_id] = replace(row, metadata={**row.metadata, **metadata})
        return self.rows[thread_id]

    async def delete(self, thread_id: str) -> bool:
        self.store.runs.rows = {k: r for k, r in self.store.runs.rows.items() if r.thread_id != thread_id}
        self.store.events.rows = [e for e in self.store.events.rows if e.thread_id != thread_id]
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
        found = [
            row
            for row in reversed(self.rows.values())
            if row.user_id == user_id
            and (status is None or row.status == status)
            and all(row.metadata.get(k) == v for k, v in (metadata or {}).items())
        ]
        return found[offset : offset + limit]


class _Runs:
    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self.rows: dict[str, RunRecord] = {}
        self.leases: dict[str, datetime] = {}

    async def create(
        self, run: RunRecord, *, exclusive: bool, lease_seconds: float = 60.0
    ) -> tuple[RunRecord, bool]:
        if run.thread_id not in self.store.threads.rows:
            raise NotFound("there is no such thread")
        mine = [row for row in self.rows.values() if row.thread_id == run.thread_id]
        for row in mine:
            if run.idempotency_key is not None and row.idempotency_key == run.idempotency_key:
                return row, False
        if exclusive and any(row.status in ACTIVE for row in mine):
            raise ThreadBusy("the thread has an active run")
        json.dumps([run.kwargs, run.metadata])  # a database could not store anything else
        self.rows[run.run_id] = copy.deepcopy(run)
        self.leases[run.run_id] = self.store.clock.now() + timedelta(seconds=lease_seconds)
        self._set_thread(run.thread_id, "busy", run.assistant_id)
        return run, True

    async def get(self, run_id: str) -> RunRecord | None:
        return self.rows.get(run_id)

    async def list(
        self, thread_id: str, *, status: RunStatus | None = None, limit: int = 10, offset: int = 0
    ) -> Sequence[RunRecord]:
        found = [
            row
            for row in reversed(self.rows.values())
            if row.thread_id == thread_id and (status is None or row.status is status)
        ]
        return found[offset : offset + limit]

    async def begin(self, run_id: str, owner: str) -> bool:
        run = self.rows.get(run_id)
        if run is None or run.status is not RunStatus.PENDING or run.owner != owner:
            return False
        others = (other for other in self.rows.values() if other.thread_id == run.thread_id)
        if any(other.status is RunStatus.RUNNING for other in others):
            return False
        self.rows[run_id] = replace(run, status=RunStatus.RUNNING, updated_at=self.store.clock.now())
        return True

    async def transition(
        self, run_id: str, *, expected: frozenset[RunStatus], to: RunStatus, error: str | None = None
    ) -> bool:
        row = self.rows.get(run_id)
        if row is None or row.status not in expected:
            return False
        self.rows[run_id] = replace(row, status=to, error=error, updated_at=self.store.clock.now())
        active = any(r.status in ACTIVE for r in self.rows.values() if r.thread_id == row.thread_id)
        if not active:
            ends = {RunStatus.SUCCESS: "idle", RunStatus.INTERRUPTED: "interrupted"}
            self._set_thread(row.thread_id, ends.get(to, "error"))
        return True

    async def heartbeat(self, owner: str, run_ids: Sequence[str], lease_seconds: float) -> frozenset[str]:
        mine = {
            run_id
            for run_id in run_ids
            if (row := self.rows.get(run_id)) is not None and row.owner == owner and row.status in ACTIVE
        }
        for run_id in mine:
            self.leases[run_id] = self.store.clock.now() + timedelta(seconds=lease_seconds)
        return frozenset(mine)

    async def take_over(self, owner: str, *, lease_seconds: float, limit: int = 100) -> Sequence[RunRecord]:
        now = self.store.clock.now()
        lapsed = [r for r in self.rows.values() if r.status in ACTIVE and self.leases[r.run_id] <= now]
        for row in lapsed[:limit]:
            self.rows[row.run_id] = replace(row, owner=owner)
            self.leases[row.run_id] = now + timedelta(seconds=lease_seconds)
        return [self.rows[row.run_id] for row in lapsed[:limit]]

    async def delete(self, run_id: str) -> bool:
        self.store.events.rows = [e for e in self.store.events.rows if e.run_id != run_id]
        return self.rows.pop(run_id, None) is not None

    def _set_thread(self, thread_id: str, status: Any, assistant_id: str | None = None) -> None:
        row = self.store.threads.rows.get(thread_id)
        if row is not None:
            assistant = assistant_id or row.last_assistant_id
            self.store.threads.rows[thread_id] = replace(row, status=status, last_assistant_id=assistant)


class _Events:
    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self.rows: list[RunEvent] = []

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
        seq = 1 + max((row.seq for row in self.rows if row.thread_id == thread_id), default=0)
        row = RunEvent(
            seq=seq,
            thread_id=thread_id,
            run_id=run_id,
            task_id=task_id,
            event_type=event_type,
            metadata=dict(metadata or {}),
            payload=copy.deepcopy(payload),
            created_at=self.store.clock.now(),
        )
        self.rows.append(row)
        return row

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
        return [
            row
            for row in self.rows
            if row.thread_id == thread_id
            and row.seq > after_seq
            and (run_id is None or row.run_id == run_id)
            and (task_id is None or row.task_id == task_id)
            and (event_types is None or row.event_type in event_types)
        ][:limit]
