"""The scheduler: claims what is due, visits it, writes the results back (TASK-6 to TASK-13, TASK-21)."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from moorage.contract.clock import Clock
from moorage.contract.errors import StoreUnavailable
from moorage.contract.stores import TaskRepository, TaskUpdate
from moorage.settings import TaskSettings
from moorage.tasks.asking import Asker, Redact
from moorage.tasks.backoff import Backoff
from moorage.tasks.claiming import Claimer, Leased
from moorage.tasks.demand import Demand
from moorage.tasks.drivers import NamedDriver
from moorage.tasks.judge import Judge
from moorage.tasks.observing import Observe, unobserved
from moorage.tasks.pool import Pool
from moorage.tasks.retention import Retention
from moorage.tasks.shares import ServerShares
from moorage.tasks.steadfast import steadfast
from moorage.tasks.text import describe
from moorage.tasks.timing import lease_plan
from moorage.tasks.visit import Visitor
from moorage.tasks.waker import Waker

_log = logging.getLogger(__name__)

_MOST_HELD = 512
_MOST_WRITTEN = 256
_FAREWELL_SECONDS = 2.0
# A job takes three steps of the event loop from its start to its result.
_IDLE_STEPS = 4


@dataclass(frozen=True, slots=True, eq=False)
class _Finished:
    update: TaskUpdate
    ends_at: float


class Scheduler:
    """One replica's poller. `run` it in a task and cancel that task to stop (TASK-11).

    ``wake`` may be called from any thread. ``on_attention`` is called when an event has become pending
    for the notifier. ``redact`` takes known secrets out of errors before they are stored (CRED-9).
    """

    def __init__(
        self,
        *,
        repository: TaskRepository,
        drivers: Mapping[str, NamedDriver],
        settings: TaskSettings,
        clock: Clock,
        owner: str,
        on_attention: Callable[[], None] = lambda: None,
        redact: Redact = str,
        observe: Observe = unobserved,
        jitter: float = 0.1,
    ) -> None:
        self._repository = repository
        self._clock = clock
        self._owner = owner
        self._on_attention = on_attention
        self._plan = lease_plan(settings)
        self._judge = Judge(settings, clock, jitter)
        self._visitor = Visitor(drivers, self._judge, Asker(settings, redact, observe), clock)
        self._shares = ServerShares(clock, settings.concurrency)
        self._pool: Pool[_Finished] = Pool(clock, settings.concurrency, self._take)
        self._demand = Demand(clock, settings.concurrency, _MOST_HELD)
        days = settings.retention_days
        self._retention = None if days is None else Retention(repository, clock, days)
        self._trouble = Backoff(0.5, min(30.0, settings.backoff_cap_seconds), jitter)
        self._waker = Waker(clock)
        self._claimer = Claimer(
            repository,
            clock,
            owner,
            lease_seconds=self._plan.lease_seconds,
            on_ready=self._waker.set,
            on_expired=on_attention,
        )
        self._queue: deque[Leased] = deque()
        self._finished: list[_Finished] = []
        self._under_way: dict[str, str] = {}
        self._started = False

    def wake(self) -> None:
        """Work may be due earlier than expected: look now."""
        self._claimer.wake()
        self._waker.set()

    async def run(self) -> None:
        """Poll until cancelled; survives whatever the repository raises."""
        self._waker.bind()
        beside = [asyncio.get_running_loop().create_task(work) for work in self._beside()]
        try:
            await steadfast(self._turn, self._clock, self._trouble, "the task scheduler")
        finally:
            for task in beside:
                task.cancel()
            await self._farewell()

    async def _turn(self) -> None:
        if not self._started:
            await self._claimer.expire_intents()
            self._started = True
        self._queue.extend(self._claimer.take())
        self._start_queued()
        await self._gather()
        await self._settle()
        room = self._room()
        if room and self._claimer.rest_seconds() <= 0:
            self._claimer.start(room)
            room = 0
        if self._finished:
            return
        rests = [self._claimer.rest_seconds()] if room else []
        if self._queue:
            rests.append(self._patience(self._queue[0]) + 0.001)
        await self._waker.wait(max(min(rests), 0.0) if rests else None)

    def _beside(self) -> Iterator[Coroutine[Any, Any, None]]:
        yield self._pool.watch()
        yield steadfast(self._beat, self._clock, self._trouble, "the replica's heartbeat")
        if self._retention is not None:
            yield steadfast(self._retention.turn, self._clock, self._trouble, "the retention of tasks")

    async def _beat(self) -> None:
        """Tasks that live in this replica's sessions stay with it while this goes on (TASK-19)."""
        await self._repository.heartbeat(self._owner, self._plan.lease_seconds)
        await self._clock.sleep(self._plan.lease_seconds / 3)

    def _room(self) -> int:
        """How many more to claim; small steps are saved up while the queue has work for the pool."""
        if self._claimer.under_way:
            return 0
        wanted = self._demand.wanted()
        room = wanted - self._pool.busy - len(self._queue)
        starving = self._pool.free > len(self._queue)
        return room if room > 0 and (starving or room * 2 >= wanted) else 0

    # --- visiting

    def _start_queued(self) -> None:
        while self._queue and self._pool.free > 0:
            leased = self._queue[0]
            if self._patience(leased) < 0:
                return  # the whole queue is as old; _settle gives it back
            self._queue.popleft()
            if self._shares.admits(leased.claim.task.server_name):
                self._start(leased)
            else:
                self._finished.append(_Finished(self._judge.postponed(leased.claim), leased.ends_at))
                self._waker.set()

    def _start(self, leased: Leased) -> None:
        claim, ends_at = leased.claim, leased.ends_at
        server = claim.task.server_name
        self._under_way[claim.task.task_id] = claim.token
        number = self._shares.started(server)

        async def visit() -> _Finished:
            # A cancel visit ends by itself before the pool ends it, with all that it has learnt.
            update = await self._visitor.visit(claim, self._plan.call_seconds * 0.95)
            self._shares.ended(server, number, answered=True)
            return _Finished(update, ends_at)

        def unanswered(reason: str) -> _Finished:
            self._shares.ended(server, number, answered=False)
            return _Finished(self._visitor.unanswered(claim, reason), ends_at)

        self._pool.start(visit(), seconds=self._plan.call_seconds, fallback=unanswered)

    def _take(self, finished: _Finished) -> None:
        self._under_way.pop(finished.update.task_id, None)
        self._finished.append(finished)
        self._start_queued()
        self._waker.set()

    def _patience(self, leased: Leased) -> float:
        """Seconds within which a call may still be started: it must end before its lease does (TASK-6)."""
        return leased.ends_at - self._plan.needed_seconds - self._clock.monotonic()

    # --- writing back

    async def _gather(self) -> None:
        """Where a driver answers at once, let the queue run first: one large batch is cheaper to write
        than many small ones. As soon as nothing comes in any more, waiting would only hold results up."""
        patience, seen = _IDLE_STEPS, len(self._finished)
        while patience and 0 < seen < _MOST_WRITTEN and (self._queue or self._pool.busy):
            await asyncio.sleep(0)
            patience = patience - 1 if len(self._finished) == seen else _IDLE_STEPS
            seen = len(self._finished)

    async def _settle(self) -> None:
        late: dict[str, str] = {}
        while self._queue and self._patience(self._queue[0]) < 0:
            claim = self._queue.popleft().claim
            late[claim.task.task_id] = claim.token
        if late:
            await self._repository.release(late)
        while self._finished:
            await self._apply(self._finished[:_MOST_WRITTEN])

    async def _apply(self, batch: Sequence[_Finished]) -> None:
        now = self._clock.monotonic()
        updates = [finished.update for finished in batch if finished.ends_at > now]
        landed = await self._write(updates) if updates else frozenset()
        # Removed only now: what a failing store did not take is offered again while its lease lasts.
        del self._finished[: len(batch)]
        self._demand.ended(len(batch))
        self._note(updates, landed)

    async def _write(self, updates: Sequence[TaskUpdate]) -> frozenset[str]:
        try:
            return await self._repository.apply(updates)
        except (StoreUnavailable, OSError):
            raise
        except Exception as exc:
            # One row that cannot be stored must not cost its siblings theirs (TASK-10).
            return await self._write_singly(updates, exc)

    async def _write_singly(self, updates: Sequence[TaskUpdate], cause: Exception) -> frozenset[str]:
        landed: set[str] = set()
        refused: list[str] = []
        for update in updates:
            try:
                landed |= await self._repository.apply([update])
            except Exception as exc:
                refused.append(f"{update.task_id}: {describe(exc)}")
        if len(refused) == len(updates) > 1:
            raise cause
        for line in refused:
            _log.error("the store refused the result of task %s; it is polled again after its lease", line)
        return frozenset(landed)

    def _note(self, updates: Sequence[TaskUpdate], landed: frozenset[str]) -> None:
        if any(update.attention is not None and update.task_id in landed for update in updates):
            self._on_attention()
        for update in updates:
            if update.task_id not in landed:
                _log.info("task %s: its lease had ended, the result is dropped", update.task_id)
        due = [update.next_poll_at for update in updates if update.next_poll_at is not None]
        due += [update.next_cancel_at for update in updates if update.next_cancel_at is not None]
        if due:
            wait = (min(due) - self._clock.now()).total_seconds()
            self._claimer.heed(wait)

    # --- leaving

    async def _farewell(self) -> None:
        """Nothing is lost, no error is counted, leases go back where possible, in bounded time."""
        claims = {entry.claim.task.task_id: entry.claim.token for entry in self._queue}
        claims.update(self._under_way)
        self._queue.clear()
        await self._pool.aclose(_FAREWELL_SECONDS)
        await self._visitor.aclose()
        with suppress(Exception):
            async with asyncio.timeout(_FAREWELL_SECONDS):
                claims.update(await self._claimer.take_late())
                if self._finished:
                    await self._write([finished.update for finished in self._finished])
                if claims:
                    await self._repository.release(claims)
                await self._repository.heartbeat(self._owner, 0)
