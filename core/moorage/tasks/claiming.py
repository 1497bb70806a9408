"""Claims run beside the visits, and it is known when the next one is worth making (TASK-21)."""

import asyncio
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from moorage.contract.clock import Clock
from moorage.contract.stores import ClaimedTask, TaskRepository
from moorage.tasks.backoff import Backoff
from moorage.tasks.text import describe

_log = logging.getLogger(__name__)

# Other replicas' new work is noticed at least this often, woken or not.
_LONGEST_REST_SECONDS = 5.0
_SHORTEST_REST_SECONDS = 0.05
_FRUITLESS_REST_SECONDS = 2.0


@dataclass(frozen=True, slots=True, eq=False)
class Leased:
    """A claim, with the end of its lease on our own clock: counted from before the claim was made, so
    that no difference between the database's clock and ours can make it look longer."""

    claim: ClaimedTask
    ends_at: float


class Claimer:
    """Makes one claim at a time in a task of its own; ``on_ready`` is called when `take` has news.

    ``on_expired`` is called when intents of dead submitters were failed (TASK-22).
    """

    def __init__(
        self,
        repository: TaskRepository,
        clock: Clock,
        owner: str,
        *,
        lease_seconds: float,
        on_ready: Callable[[], None],
        on_expired: Callable[[], None],
    ) -> None:
        self._repository = repository
        self._clock = clock
        self._owner = owner
        self._lease_seconds = lease_seconds
        self._on_ready = on_ready
        self._on_expired = on_expired
        self._again = Backoff(_SHORTEST_REST_SECONDS, _FRUITLESS_REST_SECONDS)
        self._fruitless = 0
        self._claim: asyncio.Task[Sequence[Leased]] | None = None
        self._woken = True
        # When the store said that something is due, and when what we have written since will be.
        self._seen_due = 0.0
        self._own_due = math.inf

    @property
    def under_way(self) -> bool:
        return self._claim is not None

    def rest_seconds(self) -> float:
        """How long another claim is not worth making; 0 or less where it is."""
        return 0.0 if self._woken else min(self._seen_due, self._own_due) - self._clock.monotonic()

    def wake(self) -> None:
        """Something may be due earlier than expected; one that comes during a claim counts after it."""
        self._woken = True

    def heed(self, wait_seconds: float) -> None:
        """A row was written that will be due by then."""
        self._own_due = min(self._own_due, self._clock.monotonic() + wait_seconds)

    def start(self, room: int) -> None:
        self._woken, self._own_due = False, math.inf
        self._claim = asyncio.get_running_loop().create_task(self._make(room))
        self._claim.add_done_callback(lambda _: self._on_ready())

    def take(self) -> Sequence[Leased]:
        """What the claim under way has yielded, once it has ended. Raises what it raised."""
        if self._claim is None or not self._claim.done():
            return ()
        ended, self._claim = self._claim, None
        return ended.result()

    async def take_late(self) -> Mapping[str, str]:
        """At the end: task id → token of a claim that is still under way, to be given back (TASK-11)."""
        if self._claim is not None:
            with suppress(Exception):
                return {leased.claim.task.task_id: leased.claim.token for leased in await self._claim}
        return {}

    async def expire_intents(self) -> int:
        expired = await self._repository.expire_intents()
        if expired:
            _log.warning("%d submissions ended without a trace of their outcome", expired)
            self._on_expired()
        return expired

    async def _make(self, room: int) -> Sequence[Leased]:
        ends_at = self._clock.monotonic() + self._lease_seconds
        claims = await self._repository.claim(self._owner, limit=room, lease_seconds=self._lease_seconds)
        if len(claims) < room:
            try:
                await self._look_ahead(nothing=not claims)
            except Exception as exc:
                if not claims:
                    raise
                _log.warning("the next due time is unknown, looking again soon: %s", describe(exc))
                self._seen_due = self._clock.monotonic() + _SHORTEST_REST_SECONDS
        return [Leased(claim, ends_at) for claim in claims]

    async def _look_ahead(self, *, nothing: bool) -> None:
        due = await self._repository.next_due_at()
        wait = (due - self._clock.now()).total_seconds() if due is not None else _LONGEST_REST_SECONDS
        if nothing and wait <= 0 and await self.expire_intents():
            return
        # Due and yet not ours (another replica holds its session, say): look ever less often.
        self._fruitless = self._fruitless + 1 if nothing and wait <= 0 else 0
        rest = min(max(wait, self._again.delay(self._fruitless)), _LONGEST_REST_SECONDS)
        self._seen_due = self._clock.monotonic() + rest
