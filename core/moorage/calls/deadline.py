"""A deadline over a coroutine that runs in its caller's own task, and that can be paused (PLUG-7).

A task of its own for every interceptor would be simpler, but the inner call uses anyio scopes, which want
to be entered, cancelled and left in one task; and a coroutine that swallows its cancellation could never be
given up. So the coroutine is driven step by step here.
"""

import asyncio
import contextlib
import types
from collections.abc import Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")

GRACE_SECONDS = 1.0
"""What a cancelled coroutine gets to clean up, before it is dropped."""


class PausableDeadline:
    """Bounds the time that a coroutine spends on its own; what is spent between `pause` and `resume` is free.

    ``expired`` says that it ran out. The coroutine is then cancelled, and dropped if it does not end within
    `GRACE_SECONDS`. A cancellation from outside leaves it no more than this grace, too.
    """

    def __init__(self, seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._baseline = task.cancelling()
        self._own_cancels = 0
        self._remaining = seconds
        self._waits = False
        self._paused = 0
        self._started_at = 0.0
        self._handle: asyncio.TimerHandle | None = None
        self._given_up = False
        self.expired = False

    @property
    def cancelled_from_outside(self) -> bool:
        """Whether somebody else cancelled the task since this deadline was made."""
        return self._task.cancelling() - self._own_cancels > self._baseline

    def pause(self) -> None:
        self._paused += 1
        self._stop()

    def resume(self) -> None:
        self._paused -= 1
        self._start()

    async def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Drive it to its end. Raises what it raises, `CancelledError` where it was cancelled or dropped."""
        try:
            return await self._drive(coroutine)
        finally:
            self._stop()
            for _ in range(self._own_cancels):
                self._task.uncancel()
            self._own_cancels = 0

    @types.coroutine
    def _drive(self, coroutine: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
        deliver: BaseException | None = None
        while True:
            try:
                waits_for = coroutine.send(None) if deliver is None else coroutine.throw(deliver)
            except StopIteration as stop:
                return stop.value  # type: ignore[no-any-return]
            deliver = None
            self._waits = True
            self._start()
            try:
                yield waits_for
            except asyncio.CancelledError as cancelled:
                if self._given_up:
                    _drop(coroutine)
                    raise
                deliver = cancelled
            except BaseException as raised:
                deliver = raised
            finally:
                self._stop()
                self._waits = False

    def _start(self) -> None:
        # Armed only while the coroutine waits for something else than the inner call, so that one which
        # merely sets a header costs no timer.
        if self._waits and not self._paused and self._handle is None:
            if self.cancelled_from_outside:
                self._remaining = min(self._remaining, GRACE_SECONDS)
            self._started_at = self._loop.time()
            self._handle = self._loop.call_later(max(0.0, self._remaining), self._fire)

    def _stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
            self._remaining -= self._loop.time() - self._started_at

    def _fire(self) -> None:
        self._handle = None
        if self.expired or self.cancelled_from_outside:
            self._given_up = True
        self.expired = True
        self._remaining = GRACE_SECONDS
        self._own_cancels += 1
        self._task.cancel()


def _drop(coroutine: Coroutine[Any, Any, Any]) -> None:
    # What it says to being given up is no news to anybody.
    with contextlib.suppress(BaseException):
        coroutine.close()
