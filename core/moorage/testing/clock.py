"""A clock that the test moves."""

import asyncio
import heapq
import itertools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

START = datetime(2030, 1, 1, 12, 0, tzinfo=UTC)


class FakeClock:
    """`moorage.contract.Clock` whose time stands still until `advance` (or `drive`) moves it."""

    def __init__(self, start: datetime = START) -> None:
        self._now = start
        self._elapsed = 0.0
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self.busy: Callable[[], object] = lambda: False
        """Whether real work is under way, during which `drive` and `step` must not move time."""

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        future = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._elapsed + seconds, next(self._order), future))
        await future

    @property
    def sleeping(self) -> int:
        """How many are asleep."""
        return sum(not future.done() for _, _, future in self._sleepers)

    @property
    def next_wake_seconds(self) -> float | None:
        """How far ahead the nearest sleeper wants to wake."""
        self._forget_cancelled()
        return self._sleepers[0][0] - self._elapsed if self._sleepers else None

    def move(self, seconds: float) -> None:
        """Time goes on, and whoever is due wakes in the order of the times they asked for."""
        self._elapsed += seconds
        self._now += timedelta(seconds=seconds)
        while self._sleepers and self._sleepers[0][0] <= self._elapsed:
            _, _, future = heapq.heappop(self._sleepers)
            if not future.done():
                future.set_result(None)

    async def advance(self, seconds: float) -> None:
        """`move`, then let what woke run until it waits for something else than the loop."""
        self.move(seconds)
        for _ in range(20):
            await asyncio.sleep(0)

    async def drive(self, condition: Callable[[], object], *, within: float = 10.0) -> float:
        """Move from wake-up to wake-up until the condition holds; returns the seconds that went by.

        Gives real work (threads, databases) ``within`` seconds of real time in all.
        """
        loop = asyncio.get_running_loop()
        deadline, began = loop.time() + within, self._elapsed
        while not condition():
            if loop.time() > deadline:
                raise AssertionError("the condition did not come true in time")
            await self.settle()
            if not condition():
                await self.step()
        return self._elapsed - began

    async def settle(self) -> None:
        """Give real work (threads, databases) the time to do what is to do now."""
        await asyncio.sleep(0.005)
        while not await self._is_idle():  # noqa: ASYNC110 - no event tells that threads are idle
            await asyncio.sleep(0.002)

    async def step(self) -> None:
        """Move to the next wake-up, unless something is under way."""
        if await self._is_idle() and (ahead := self.next_wake_seconds) is not None:
            await self.advance(ahead)

    async def _is_idle(self) -> bool:
        # Between two calls of one chain of work there are a few steps of the loop.
        for _ in range(30):
            if self.busy():
                return False
            await asyncio.sleep(0)
        return True

    def _forget_cancelled(self) -> None:
        while self._sleepers and self._sleepers[0][2].done():
            heapq.heappop(self._sleepers)


async def eventually(condition: Callable[[], object], *, within: float = 10.0) -> None:
    """Wait in real time until the condition holds, at most ``within`` seconds."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within
    while not condition():
        if loop.time() > deadline:
            raise AssertionError("the condition did not come true in time")
        await asyncio.sleep(0.005)
