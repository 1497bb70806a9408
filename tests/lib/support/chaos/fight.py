"""Starts the processes, kills them at random, and waits until all is quiet."""

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from moorage.clock import SystemClock
from moorage.contract import StoreUnavailable, TaskFilter, TaskRecord, TaskStatus
from moorage_drivers.sql.store import open_store
from support.chaos.process import lines
from support.chaos.verdict import Verdict, judge, rows

LIB = str(Path(__file__).parents[2])
ACTIVE = frozenset(status for status in TaskStatus if not status.terminal)


@dataclass(frozen=True)
class Plan:
    """How hard. ``restart``: what restarts the database, once, in the middle."""

    tasks: int
    workers: int
    submitters: int
    kills: int
    seconds_between_kills: float = 0.5
    restart: Callable[[], None] | None = None
    broken_fence: bool = False
    quiet_within_seconds: float = 120.0


class Fighters:
    """The processes, by name."""

    def __init__(self, url: str, folder: Path, plan: Plan) -> None:
        self._url, self._folder, self._plan = url, folder, plan
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._log = (folder / "processes.log").open("ab")

    def start(self, name: str) -> None:
        kind = name.partition("-")[0]
        each = self._plan.tasks // self._plan.submitters
        more = [str(each)] if kind == "submitter" else []
        self._running[name] = subprocess.Popen(
            [sys.executable, "-m", "support.chaos.process", kind, self._url, str(self._folder), name, *more],
            env={**os.environ, "PYTHONPATH": LIB},
            stdout=self._log,
            stderr=self._log,
        )

    def names(self, kind: str) -> list[str]:
        return [name for name in self._running if name.startswith(kind)]

    def submitting(self) -> list[str]:
        """Submitters that are at it; one that gave up because the database was away starts again."""
        left = []
        for name in self.names("submitter"):
            status = self._running[name].poll()
            if status not in (None, 0):
                self.start(name)
            if status != 0:
                left.append(name)
        return left

    def kill(self, name: str) -> None:
        """SIGKILL, and a new life at once."""
        self._running[name].send_signal(signal.SIGKILL)
        self._running[name].wait()
        self.start(name)

    def revive(self) -> None:
        for name in self.names("worker"):
            if self._running[name].poll() is not None:
                self.start(name)

    def stop(self) -> None:
        for process in self._running.values():
            process.terminate()
        for process in self._running.values():
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._log.close()


async def fight(url: str, folder: Path, plan: Plan, *, seed: int | None = None) -> Verdict:
    """Fight to the end; the verdict is on what is left. ``url`` is of a migrated, empty database."""
    chance = random.Random(seed)
    if plan.broken_fence:
        (folder / "broken-fence").touch()
    began = time.monotonic()
    fighters = Fighters(url, folder, plan)
    killed = 0
    try:
        for number in range(plan.workers):
            fighters.start(f"worker-{number}")
        for number in range(plan.submitters):
            fighters.start(f"submitter-{number}")
        restart = plan.restart
        while killed < plan.kills or fighters.submitting():
            await asyncio.sleep(plan.seconds_between_kills)
            fighters.revive()
            if killed < plan.kills:
                submitting = fighters.submitting()
                fighters.kill(chance.choice([*fighters.names("worker"), *submitting[:1]]))
                killed += 1
            if restart is not None and killed >= plan.kills // 2:
                await asyncio.to_thread(restart)
                restart = None
        table = await _quiet(url, fighters, plan.quiet_within_seconds)
    finally:
        await asyncio.to_thread(fighters.stop)
    verdict = judge(lines(folder), table)
    verdict.kills, verdict.seconds = killed, time.monotonic() - began
    return verdict


async def _quiet(url: str, fighters: Fighters, within: float) -> dict[str, TaskRecord]:
    """Wait until nothing is active and nothing is to be delivered; the rows then."""
    deadline = time.monotonic() + within
    while True:
        fighters.revive()
        try:
            async with open_store(url, SystemClock(), False) as store:
                active = (await store.tasks.list(TaskFilter(statuses=ACTIVE, limit=1))).items
                if not active or time.monotonic() > deadline:
                    table = await rows(store)
                    waiting = [task for task in table.values() if task.notification_status == "pending"]
                    if not waiting or time.monotonic() > deadline:
                        return dict(table)
        except StoreUnavailable:
            pass
        await asyncio.sleep(0.5)
