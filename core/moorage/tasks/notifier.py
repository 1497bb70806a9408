"""The notifier: takes attention events to their sinks (NOTE-1 to NOTE-3)."""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from moorage.accounts import Account
from moorage.contract.clock import Clock
from moorage.contract.empty import EMPTY
from moorage.contract.errors import StoreUnavailable
from moorage.contract.sinks import NotificationSink
from moorage.contract.stores import ClaimedNotification, NotificationUpdate, TaskRepository
from moorage.settings import TaskSettings
from moorage.tasks.asking import Redact
from moorage.tasks.backoff import Backoff
from moorage.tasks.delivery import Courier, Ledger, notification_of
from moorage.tasks.observing import Observe, unobserved
from moorage.tasks.pool import Pool
from moorage.tasks.secondary import SecondarySinks
from moorage.tasks.steadfast import steadfast
from moorage.tasks.text import describe
from moorage.tasks.timing import lease_plan
from moorage.tasks.waker import Waker

_log = logging.getLogger(__name__)

_LONGEST_REST_SECONDS = 5.0
_SHORTEST_REST_SECONDS = 0.05
_FAREWELL_SECONDS = 2.0
_MOST_TRIES = 3


@dataclass(slots=True, eq=False)
class _Entry:
    update: NotificationUpdate
    ends_at: float
    tries: int = 0


class Notifier:
    """One replica's notifier. `run` it in a task and cancel that task to stop.

    The outcome of the sink named ``primary`` decides each notification's status; the others are told,
    best-effort. ``wake`` may be called from any thread.
    """

    def __init__(
        self,
        *,
        repository: TaskRepository,
        sinks: Mapping[str, NotificationSink],
        primary: str,
        settings: TaskSettings,
        clock: Clock,
        owner: str,
        redact: Redact = str,
        observe: Observe = unobserved,
        accounts: Mapping[str, Account] = EMPTY,
        jitter: float = 0.1,
    ) -> None:
        """Raises `ValueError` where no sink is named ``primary``."""
        if primary not in sinks:
            raise ValueError(f"there is no notification sink {primary!r}; installed: {sorted(sinks)}")
        self._repository = repository
        self._clock = clock
        self._owner = owner
        self._plan = lease_plan(settings)
        self._courier = Courier(primary, sinks[primary], redact, observe, accounts.get(primary))
        self._ledger = Ledger(settings, clock, redact, jitter)
        self._others = SecondarySinks(
            {name: sink for name, sink in sinks.items() if name != primary},
            clock,
            call_seconds=self._plan.call_seconds,
            backoff_cap_seconds=settings.backoff_cap_seconds,
            redact=redact,
            observe=observe,
            accounts=accounts,
        )
        self._pool: Pool[_Entry] = Pool(clock, settings.concurrency, self._take)
        self._trouble = Backoff(0.5, min(30.0, settings.backoff_cap_seconds), jitter)
        self._waker = Waker(clock)
        self._entries: list[_Entry] = []
        self._under_way: dict[str, ClaimedNotification] = {}
        self._quiet_until = 0.0
        self._woken = False

    def wake(self) -> None:
        """An event may be pending: look now."""
        self._woken = True
        self._waker.set()

    async def run(self) -> None:
        """Deliver until cancelled; survives whatever repository and sinks do."""
        self._waker.bind()
        watch = asyncio.get_running_loop().create_task(self._pool.watch())
        try:
            await steadfast(self._turn, self._clock, self._trouble, "the notifier")
        finally:
            watch.cancel()
            await self._farewell()

    async def _turn(self) -> None:
        await self._write_back()
        if self._woken:
            self._woken, self._quiet_until = False, 0.0
        if self._pool.free and self._clock.monotonic() >= self._quiet_until:
            await self._claim(self._pool.free)
        if self._entries:
            return
        await self._waker.wait(self._quiet_until - self._clock.monotonic() if self._pool.free else None)

    async def _claim(self, room: int) -> None:
        ends_at = self._clock.monotonic() + self._plan.lease_seconds
        claims = await self._repository.claim_notifications(
            self._owner, limit=room, lease_seconds=self._plan.lease_seconds
        )
        for claim in claims:
            self._start(claim, ends_at)
        if len(claims) < room:
            due = await self._repository.next_notification_at()
            wait = (due - self._clock.now()).total_seconds() if due is not None else _LONGEST_REST_SECONDS
            rest = min(max(wait, _SHORTEST_REST_SECONDS), _LONGEST_REST_SECONDS)
            self._quiet_until = self._clock.monotonic() + rest

    def _start(self, claim: ClaimedNotification, ends_at: float) -> None:
        self._under_way[claim.token] = claim
        self._others.offer(claim.task, claim.version)
        notification = notification_of(claim.task, claim.version, claim.attempt)

        async def deliver() -> _Entry:
            delivery = await self._courier.deliver(notification)
            return _Entry(self._ledger.entry(claim, delivery), ends_at)

        def unanswered(reason: str) -> _Entry:
            return _Entry(self._ledger.entry(claim, self._courier.unanswered(reason)), ends_at)

        self._pool.start(deliver(), seconds=self._plan.call_seconds, fallback=unanswered)

    def _take(self, entry: _Entry) -> None:
        self._under_way.pop(entry.update.token, None)
        self._entries.append(entry)
        self._waker.set()

    async def _write_back(self) -> None:
        """Write what has ended. What a store in trouble does not take is offered again while its lease
        lasts; one that it keeps refusing must not hold up the others."""
        trouble: Exception | None = None
        for entry in list(self._entries):
            try:
                if entry.ends_at > self._clock.monotonic():
                    await self._write(entry.update)
            except (StoreUnavailable, OSError):
                raise
            except Exception as exc:
                entry.tries += 1
                if entry.tries < _MOST_TRIES:
                    trouble = exc
                    continue
                task_id = entry.update.task_id
                _log.error("task %s: the store refused a delivery's outcome: %s", task_id, describe(exc))
            self._entries.remove(entry)
        if trouble is not None:
            raise trouble

    async def _write(self, update: NotificationUpdate) -> None:
        landed = await self._repository.apply_notification(update)
        if not landed:
            _log.info("task %s: event %d was replaced or its lease ended", update.task_id, update.version)
            self._quiet_until = 0.0
        elif update.status == "dead_letter":
            _log.warning(
                "task %s: event %d could not be delivered: %s", update.task_id, update.version, update.error
            )
        elif update.next_at is not None:
            wait = (update.next_at - self._clock.now()).total_seconds()
            self._quiet_until = min(self._quiet_until, self._clock.monotonic() + wait)

    async def _farewell(self) -> None:
        """A delivery under way is not counted, and its lease goes back where possible: whoever claims it
        next asks the sink with the same delivery id (TASK-11, NOTE-2)."""
        left = list(self._under_way.values())
        await self._pool.aclose(_FAREWELL_SECONDS)
        await self._others.aclose()
        with suppress(Exception):
            async with asyncio.timeout(_FAREWELL_SECONDS):
                await self._write_back()
                for claim in left:
                    await self._repository.apply_notification(self._ledger.given_back(claim))
