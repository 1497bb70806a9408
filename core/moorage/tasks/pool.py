"""A bounded number of leased jobs at once, each under a deadline (TASK-6, PLUG-7)."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from moorage.contract.clock import Clock
from moorage.tasks.text import describe
from moorage.tasks.waker import Waker

_log = logging.getLogger(__name__)

R = TypeVar("R")


@dataclass(frozen=True, slots=True, eq=False)
class _Job(Generic[R]):
    ends_at: float
    seconds: float
    fallback: Callable[[str], R]


class Pool(Generic[R]):
    """Runs jobs in tasks of their own and hands each one's result to ``on_result``, exactly once.

    A job that hangs is cancelled at its deadline and its place is free at once, whether or not it obeys;
    its result, and that of one that raised or cancelled itself, is what its ``fallback`` makes of the
    reason.
    """

    def __init__(self, clock: Clock, size: int, on_result: Callable[[R], None]) -> None:
        self._clock = clock
        self._size = size
        self._on_result = on_result
        self._live: dict[asyncio.Task[R], _Job[R]] = {}
        self._left: set[asyncio.Task[R]] = set()
        self._alarm = Waker(clock)

    @property
    def free(self) -> int:
        return self._size - len(self._live)

    @property
    def busy(self) -> int:
        return len(self._live)

    def start(self, job: Coroutine[Any, Any, R], *, seconds: float, fallback: Callable[[str], R]) -> None:
        """Run ``job``, for at most ``seconds``."""
        task = asyncio.get_running_loop().create_task(job)
        if not self._live:
            self._alarm.set()
        self._live[task] = _Job(self._clock.monotonic() + seconds, seconds, fallback)
        task.add_done_callback(self._ended)

    async def watch(self) -> None:
        """End what is overdue; runs beside the jobs until it is cancelled."""
        self._alarm.bind()
        while True:
            ends = [job.ends_at for job in self._live.values()]
            await self._alarm.wait(min(ends) - self._clock.monotonic() if ends else None)
            self._end_overdue()

    async def aclose(self, seconds: float) -> None:
        """Cancel all jobs without results and give them ``seconds`` of real time (TASK-11)."""
        self._left.update(self._live)
        self._live.clear()
        left = [task for task in self._left if not task.done()]
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=seconds)

    def _end_overdue(self) -> None:
        now = self._clock.monotonic()
        for task, job in [entry for entry in self._live.items() if entry[1].ends_at <= now]:
            if task.done():
                continue
            del self._live[task]
            self._left.add(task)
            task.cancel()
            self._on_result(job.fallback(f"no answer within {job.seconds:g} seconds"))

    def _ended(self, task: "asyncio.Task[R]") -> None:
        job = self._live.pop(task, None)
        self._left.discard(task)
        if task.cancelled():
            if job is not None:
                self._on_result(job.fallback("the call cancelled itself"))
            return
        exc = task.exception()
        if exc is not None:
            # Jobs contain what they call, so this is a fault of ours.
            _log.error("a background job failed: %s", describe(exc), exc_info=exc)
        if job is not None:
            self._on_result(task.result() if exc is None else job.fallback(describe(exc)))
