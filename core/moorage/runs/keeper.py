"""Keeping runs truthful: leases, what other processes left behind, and the end of this one."""

import logging
import math
from collections.abc import Coroutine
from typing import Any

from moorage.contract.clock import Clock
from moorage.contract.errors import MoorageError
from moorage.contract.identity import Principal
from moorage.contract.runs import RunStatus
from moorage.contract.stores import RunRecord, Store
from moorage.runs.directory import AssistantDirectory
from moorage.runs.ending import Ender
from moorage.runs.execution import ACTIVE, Executor
from moorage.runs.journal import Journal
from moorage.runs.records import had_secrets, restored
from moorage.settings import RunSettings

log = logging.getLogger(__name__)

LATER_SECONDS = 10.0

PROCESS_GONE = "the process that executed this run is gone; a run that has begun is never repeated"
SECRETS_GONE = (
    "the process that accepted this run is gone, and with it the secrets of the request; "
    "send the request again"
)
STOPPED = "the gateway was stopped while this run was going on; a run that has begun is never repeated"


class Keeper:
    """Extends the leases of this process's runs, and ends or starts those whose process is gone."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        replica_id: str,
        executor: Executor,
        directory: AssistantDirectory,
        journal: Journal,
        ender: Ender,
        settings: RunSettings,
    ) -> None:
        self._store = store
        self._clock = clock
        self._replica_id = replica_id
        self._executor = executor
        self._directory = directory
        self._journal = journal
        self._ender = ender
        self._settings = settings
        self._later: list[tuple[float, Coroutine[Any, Any, None]]] = []

    def later(self, work: Coroutine[Any, Any, None]) -> None:
        """Do this once other processes have had the time to see what was recorded, at the end at last."""
        self._later.append((self._clock.monotonic() + LATER_SECONDS, work))

    async def _do_later(self, *, now: float) -> None:
        due, self._later = [w for w in self._later if w[0] <= now], [w for w in self._later if w[0] > now]
        for _, work in due:
            try:
                await work
            except Exception:
                log.exception("cleaning up after a run failed")

    async def keep(self) -> None:
        """Loop until cancelled. A store that cannot be reached is tried again."""
        next_look = self._clock.monotonic()
        while True:
            try:
                await self.beat()
                if self._clock.monotonic() >= next_look:
                    await self.take_over()
                    await self._do_later(now=self._clock.monotonic())
                    next_look = self._clock.monotonic() + self._settings.take_over_seconds
            except Exception:
                log.exception("keeping the leases of runs failed and is tried again")
            await self._clock.sleep(self._settings.heartbeat_seconds)

    async def beat(self) -> None:
        """Extend leases; stop what was cancelled or taken over elsewhere."""
        ids = [execution.run.run_id for execution in self._executor.all() if not execution.ending]
        if not ids:
            return
        mine = await self._store.runs.heartbeat(self._replica_id, ids, self._settings.lease_seconds)
        for run_id in ids:
            if run_id not in mine:
                # Not waited for: an assistant that is slow to end must not let the other leases lapse.
                self._executor.cancel(run_id, again=False)

    async def take_over(self) -> None:
        """Runs whose process is gone: one that has begun ends in an error; one that has not begun is
        started here, unless its secrets are gone (RUN-1)."""
        lease = self._settings.lease_seconds
        for run in await self._store.runs.take_over(self._replica_id, lease_seconds=lease):
            if self._executor.get(run.run_id) is None:  # else our own, kept from its heartbeat for a while
                await self._resolve(run)

    async def _resolve(self, run: RunRecord) -> None:
        if run.status is RunStatus.RUNNING:
            await self._fail(run, PROCESS_GONE)
        elif had_secrets(run):
            await self._fail(run, SECRETS_GONE)
        else:
            try:
                named = self._directory.usable(run.assistant_id)
            except MoorageError as error:
                await self._fail(run, str(error))
                return
            roles = await self._store.keys.roles_of(run.user_id)
            request = restored(run, Principal(run.user_id, roles))
            self._executor.start(run, request, named, before=self._ender.room_for(run))

    async def _fail(self, run: RunRecord, error: str) -> None:
        log.warning("run %s of thread %s: %s", run.run_id, run.thread_id, error)
        await self._journal.conclude(run.run_id, expected=ACTIVE, to=RunStatus.ERROR, error=error)

    async def shut_down(self) -> None:
        """End what this process executes, and give back what it has not begun."""
        queued: list[str] = []
        for execution in self._executor.all():
            run_id = execution.run.run_id
            if execution.ending:
                pass
            elif execution.began:
                await self._journal.conclude(run_id, expected=ACTIVE, to=RunStatus.INTERRUPTED, error=STOPPED)
            elif had_secrets(execution.run):
                await self._fail(execution.run, SECRETS_GONE)
            else:
                queued.append(run_id)
            await self._executor.stop(run_id)
        if queued:
            await self._store.runs.heartbeat(self._replica_id, queued, 0.0)
        await self._do_later(now=math.inf)
