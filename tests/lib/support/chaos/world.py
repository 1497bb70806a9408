"""The remote, the driver, the sink and the store's wrapper: everything that a worker touches."""

import asyncio
import json
import os
import random
import secrets
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from moorage.contract import (
    ClaimedTask,
    DeliveryOutcome,
    DeliveryState,
    Notification,
    ServerClaim,
    ServerConfig,
    SubmitCall,
    SubmitRejected,
    TaskHandle,
    TaskRef,
    TaskRepository,
    TaskSnapshot,
    TaskStatus,
    TaskUpdate,
    TransientDriverError,
)
from moorage.settings import TaskSettings

LEASE_SECONDS = 3.0
SETTINGS = TaskSettings(
    poll_interval_seconds=0.3, lease_seconds=LEASE_SECONDS, concurrency=64, backoff_cap_seconds=1.0
)


class Journal:
    """Lines of JSON, each in one write to a file that is only ever appended to."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(self, kind: str, **fields: Any) -> None:
        """``at`` is the machine's monotonic clock, the same for all processes."""
        line = json.dumps({"kind": kind, "at": time.monotonic(), **fields})
        os.write(self._file, line.encode() + b"\n")


class ChaosDriver:
    """Its remote is a rule: a job ends at the moment that its id names, whoever asks."""

    def __init__(self, journal: Journal, leases: Mapping[str, str], chance: random.Random) -> None:
        self._journal = journal
        self._leases = leases
        self._chance = chance

    def claim(self, server: ServerConfig, tool_names: Sequence[str]) -> ServerClaim:
        return ServerClaim()

    async def submit(self, call: SubmitCall) -> TaskHandle:
        fate = self._chance.random()
        if fate < 0.01:
            raise SubmitRejected("no room")
        if fate < 0.02:
            raise TransientDriverError("not reached")
        seconds = float(call.arguments["seconds"])
        remote_id = f"{secrets.token_hex(8)}:{time.time() + seconds:.3f}"
        self._journal.write("accepted", task=call.task_id, remote=remote_id)
        if fate < 0.03:
            raise TransientDriverError("the reply was lost")
        if fate < 0.035:
            await asyncio.Event().wait()
        if fate < 0.04:
            return "rubbish"  # type: ignore[return-value]
        return TaskHandle(remote_id)

    async def get_status(self, ref: TaskRef) -> TaskSnapshot:
        token = self._leases.get(ref.task_id, "")
        self._journal.write("poll", task=ref.task_id, token=token)
        await asyncio.sleep(self._chance.random() * 0.05)
        fate = self._chance.random()
        if fate < 0.03:
            raise TransientDriverError("try later")
        if fate < 0.035:
            await asyncio.Event().wait()
        if fate < 0.04:
            return None  # type: ignore[return-value]
        if fate < 0.041:
            return TaskSnapshot(status=TaskStatus.WORKING, remote_id="somebody else's")
        if time.time() < float(ref.remote_id.partition(":")[2]):
            return TaskSnapshot(status=TaskStatus.WORKING, poll_after_seconds=0.5)
        if ref.remote_id[0] in "01":
            return TaskSnapshot(status=TaskStatus.FAILED, error="it went wrong")
        return TaskSnapshot(status=TaskStatus.COMPLETED, result={"remote": ref.remote_id})

    async def cancel(self, ref: TaskRef) -> TaskSnapshot:
        self._journal.write("cancel", task=ref.task_id, remote=ref.remote_id)
        return TaskSnapshot(status=TaskStatus.CANCELLED)


class ChaosSink:
    """An effect is a file, made once for each delivery id, as a thread's run is.

    It may fail before the effect and lose its answer after it, but it never denies an effect that was.
    """

    def __init__(self, journal: Journal, effects: Path, chance: random.Random) -> None:
        self._journal = journal
        self._effects = effects
        self._chance = chance

    async def deliver(self, notification: Notification) -> DeliveryOutcome:
        effect = self._effects / notification.delivery_id.replace(":", "-")
        if not effect.exists():
            fate = self._chance.random()
            if fate < 0.02:
                raise ConnectionError("not reached")
            if fate < 0.03:
                return DeliveryOutcome(DeliveryState.BUSY)
            if fate < 0.04:
                return DeliveryOutcome(DeliveryState.FAILED, "no")
            effect.touch()
        self._journal.write(
            "effect",
            task=notification.task_id,
            version=notification.version,
            delivery=notification.delivery_id,
            status=notification.status.value,
        )
        fate = self._chance.random()
        if fate < 0.02:
            raise ConnectionError("the answer was lost")
        if fate < 0.025:
            await asyncio.Event().wait()
        return DeliveryOutcome(DeliveryState.DELIVERED)


class JournalledTasks:
    """A `TaskRepository` that writes down leases and ends. ``broken_fence``: the database holds leases for a
    moment only, while their holder believes in the whole of them."""

    def __init__(self, inner: TaskRepository, journal: Journal, *, broken_fence: bool = False) -> None:
        self._inner = inner
        self._journal = journal
        self._broken_fence = broken_fence
        self.leases: dict[str, str] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def claim(
        self, owner: str, *, limit: int, lease_seconds: float, **more: Any
    ) -> Sequence[ClaimedTask]:
        before = time.monotonic()
        held = 0.05 if self._broken_fence else lease_seconds
        claims = await self._inner.claim(owner, limit=limit, lease_seconds=held, **more)
        for claim in claims:
            task = claim.task.task_id
            self.leases[task] = claim.token
            self._journal.write("claim", task=task, token=claim.token, until=before + lease_seconds)
        return claims

    async def apply(self, updates: Sequence[TaskUpdate]) -> frozenset[str]:
        for update in updates:
            self._journal.write("back", task=update.task_id, token=update.token)
        landed = await self._inner.apply(updates)
        for update in updates:
            if update.task_id in landed and update.outcome is not None and update.outcome.status.terminal:
                self._journal.write("end", task=update.task_id, status=update.outcome.status.value)
        return landed

    async def release(self, claims: Mapping[str, str]) -> frozenset[str]:
        for task, token in claims.items():
            self._journal.write("back", task=task, token=token)
        return await self._inner.release(claims)
