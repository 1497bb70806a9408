"""Calls into code that may hang, swallow cancellation or cancel itself (PLUG-7)."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from moorage.contract.clock import Clock

T = TypeVar("T")


class SelfCancelled(RuntimeError):
    """A call ended in a cancellation that nobody outside had asked for."""

    def __init__(self) -> None:
        super().__init__("the call cancelled itself")


class CallRunner:
    """Runs each call in a task of its own, so that its end never depends on its good will.

    A call that ignores its cancellation is left behind, and nobody waits for it but `aclose`.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, call: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(call)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def run(self, call: Coroutine[Any, Any, T], seconds: float) -> T:
        """The call's result. Raises `TimeoutError` after ``seconds`` and `SelfCancelled`; being cancelled
        cancels the call, and does not wait for its end."""
        task = self.start(call)
        try:
            if not await self.wait({task}, seconds):
                raise TimeoutError(f"no answer within {seconds:g} seconds")
        finally:
            task.cancel()
        return outcome_of(task)

    async def wait(self, tasks: "set[asyncio.Task[Any]]", seconds: float) -> "set[asyncio.Task[Any]]":
        """Wait for the first of them, at most ``seconds``; returns those that are done."""
        alarm = asyncio.get_running_loop().create_task(self._clock.sleep(max(seconds, 0.0)))
        try:
            done, _ = await asyncio.wait({*tasks, alarm}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            alarm.cancel()
        return done - {alarm}

    async def finish(self, task: "asyncio.Task[Any]", seconds: float) -> bool:
        """Wait for the end of ``task`` through any number of cancellations of the caller, at most
        ``seconds``; True where it ended. Those cancellations are the caller's to remember."""
        alarm = asyncio.get_running_loop().create_task(self._clock.sleep(max(seconds, 0.0)))
        try:
            while not task.done() and not alarm.done():
                try:
                    await asyncio.wait({task, alarm}, return_when=asyncio.FIRST_COMPLETED)
                except asyncio.CancelledError:
                    continue
        finally:
            alarm.cancel()
        return task.done()

    async def aclose(self, seconds: float = 2.0) -> None:
        """Cancel what is left in this event loop, and give it ``seconds`` of real time."""
        here = asyncio.get_running_loop()
        left = [task for task in self._tasks if not task.done() and task.get_loop() is here]
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=seconds)

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # seen: one that was left behind has nobody else to look at it


def outcome_of(task: "asyncio.Task[T]") -> T:
    """The result of an ended task, with a cancellation from within as an ordinary error."""
    if task.cancelled():
        raise SelfCancelled
    return task.result()
