"""The scheduler: claims what is due, visits it, writes the results back (TASK-6 to TASK-13, TASK-21)."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from moorage.contract.clock import Clock
from moorage.contract.errors import StoreUnavailable
from moorage.contract.stores import ClaimedTask, TaskRepository, TaskUpdate
from moorage.settings import TaskSettings
from moorage.tasks.asking import Asker, Redact
from moorage.tasks.backoff import Backoff
from moorage.tasks.demand import Demand
from moorage.tasks.drivers import NamedDriver
from moorage.tasks.judge import Judge
from moorage.tasks.pool import Pool
from moorage.tasks.steadfast import steadfast
from moorage.tasks.text import describe
from moorage.tasks.timing import lease_plan
from moorage.tasks.visit import Visitor
from moorage.tasks.waker import Waker

_log = logging.getLogger(__name__)

_MOST_CLAIMED = 256
# Other replicas' new work is noticed at least this often, woken or not.
_LONGEST_REST_SECONDS = 5.0
_SHORTEST_REST_SECONDS = 0.05
_FAREWELL_SECONDS = 2.0


@dataclass(frozen=True, slots=True, eq=False)
class _Leased:
    """A claim, with the end of its lease on our own clock: counted from before the claim was made, so
    that no difference between the database's clock and ours can make it look longer."""

    claim: ClaimedTask
    ends_at: float


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
        jitter: float = 0.1,
    ) -> None:
        self._repository = repository
        self._clock = clock
        self._owner = owner
        self._on_attention = on_attention
        self._plan = lease_plan(settings)
        self._visitor = Visitor(drivers, Judge(settings, clock, jitter), Asker(settings, redact), clock)
        self._pool: Pool[_Finished] = Pool(clock, settings.concurrency, self._take)
        self._demand = Demand(clock, settings.concurrency, _MOST_CLAIMED)
        self._trouble = Backoff(0.5, min(30.0, settings.backoff_cap_seconds), jitter)
        self._waker = Waker(clock)
        self._queue: deque[_Leased] = deque()
        self._finished: list[_Finished] = []
        self._claiming: asyncio.Task[Sequence[ClaimedTask]] | None = None
        self._under_way: dict[str, str] = {}
        self._quiet_until = 0.0
        self._woken = False
        self._started = False

    def wake(self) -> None:
        """Work may be due earlier than expected: look now."""
        self._woken = True
        self._waker.set()

    async def run(self) -> None:
        """Poll until cancelled; survives whatever the repository raises."""
        self._waker.bind()
        watch = asyncio.get_running_loop().create_task(self._pool.watch())
        try:
            await steadfast(self._turn, self._clock, self._trouble, "the task scheduler")
        finally:
            watch.cancel()
            await self._farewell()

    async def _turn(self) -> None:
        if not self._started:
            await self._expire_intents()
            self._started = True
        await self._settle()
        self._start_queued()
        if self._woken:
            self._woken, self._quiet_until = False, 0.0
        if self._room() and self._clock.monotonic() >= self._quiet_until:
            await self._claim()
            self._start_queued()
        if self._finished:
            return
        rest = self._quiet_until - self._clock.monotonic() if self._room() else self._queue_patience()
        await self._waker.wait(rest)

    # --- claiming

    def _room(self) -> int:
        """How many more to claim; small steps are saved up while the queue has work for the pool."""
        held = self._pool.busy + len(self._queue)
        wanted = self._demand.wanted()
        room = wanted - held
        starving = self._pool.free > len(self._queue)
        return room if room > 0 and (starving or room * 2 >= wanted) else 0

    async def _claim(self) -> None:
        room = self._room()
        ends_at = self._clock.monotonic() + self._plan.lease_seconds
        # In a task of its own: a claim that lands while we are being cancelled is still given back.
        self._claiming = asyncio.get_running_loop().create_task(self._ask_for(room))
        try:
            claims = await asyncio.shield(self._claiming)
        except Exception:
            self._claiming = None
            raise
        self._claiming = None
        self._queue.extend(_Leased(claim, ends_at) for claim in claims)
        if len(claims) < room:
            await self._look_ahead(nothing=not claims)

    async def _ask_for(self, limit: int) -> Sequence[ClaimedTask]:
        return await self._repository.claim(self._owner, limit=limit, lease_seconds=self._plan.lease_seconds)

    async def _look_ahead(self, *, nothing: bool) -> None:
        due = await self._repository.next_due_at()
        wait = (due - self._clock.now()).total_seconds() if due is not None else _LONGEST_REST_SECONDS
        if nothing and wait <= 0 and await self._expire_intents():
            return
        rest = min(max(wait, _SHORTEST_REST_SECONDS), _LONGEST_REST_SECONDS)
        self._quiet_until = self._clock.monotonic() + rest

    async def _expire_intents(self) -> int:
        expired = await self._repository.expire_intents()
        if expired:
            _log.warning("%d submissions ended without a trace of their outcome", expired)
            self._on_attention()
        return expired

    # --- visiting

    def _start_queued(self) -> None:
        while self._queue and self._pool.free > 0:
            leased = self._queue[0]
            if self._too_late(leased):
                return  # the whole queue is as old; _settle gives it back
            self._queue.popleft()
            self._start(leased)

    def _start(self, leased: _Leased) -> None:
        claim, ends_at = leased.claim, leased.ends_at
        self._under_way[claim.task.task_id] = claim.token

        async def visit() -> _Finished:
            # A cancel visit ends by itself before the pool ends it, with all that it has learnt.
            return _Finished(await self._visitor.visit(claim, self._plan.call_seconds * 0.95), ends_at)

        def unanswered(reason: str) -> _Finished:
            return _Finished(self._visitor.unanswered(claim, reason), ends_at)

        self._pool.start(visit(), seconds=self._plan.call_seconds, fallback=unanswered)

    def _take(self, finished: _Finished) -> None:
        self._under_way.pop(finished.update.task_id, None)
        self._finished.append(finished)
        self._start_queued()
        self._waker.set()

    def _too_late(self, leased: _Leased) -> bool:
        return leased.ends_at - self._clock.monotonic() < self._plan.needed_seconds

    def _queue_patience(self) -> float | None:
        if not self._queue:
            return None
        left = self._queue[0].ends_at - self._plan.needed_seconds - self._clock.monotonic()
        return max(left, 0.0) + 0.001

    # --- writing back

    async def _settle(self) -> None:
        late = {
            leased.claim.task.task_id: leased.claim.token for leased in self._queue if self._too_late(leased)
        }
        if late:
            self._queue = deque(entry for entry in self._queue if entry.claim.task.task_id not in late)
            await self._repository.release(late)
        while self._finished:
            await self._apply(self._finished[:_MOST_CLAIMED])

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
            self._quiet_until = min(self._quiet_until, self._clock.monotonic() + wait)

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
                claims.update(await self._claimed_late())
                if self._finished:
                    await self._write([finished.update for finished in self._finished])
                if claims:
                    await self._repository.release(claims)

    async def _claimed_late(self) -> Mapping[str, str]:
        if self._claiming is None:
            return {}
        with suppress(Exception):
            return {claim.task.task_id: claim.token for claim in await self._claiming}
        return {}
