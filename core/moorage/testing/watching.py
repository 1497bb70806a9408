"""What all suites watch for: a loop that stands still, calls that outlive their cancellation."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

from moorage.testing.checks import Shortfall, told

PROMPTLY_SECONDS = 1.0
LONGEST_BLOCK_SECONDS = 0.25
_PATIENCE_SECONDS = 6.0


class Heartbeat:
    """How long the event loop stood still while the block ran, at most.

    A thread looks on, and counts only time in which it ran itself: a machine that is busy with other things
    holds up both, and is nobody's fault.
    """

    longest_seconds = 0.0

    async def __aenter__(self) -> "Heartbeat":
        self._beats = 0
        self._over = threading.Event()
        self._task = asyncio.ensure_future(self._beat())
        self._thread = threading.Thread(target=self._look_on, name="heartbeat", daemon=True)
        await asyncio.sleep(0)
        self._thread.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.sleep(0.02)
        self._over.set()
        self._thread.join()
        self._task.cancel()
        await asyncio.wait({self._task})

    def must_be_steady(self) -> None:
        """Raises `Shortfall` where it stood still for too long."""
        if self.longest_seconds > LONGEST_BLOCK_SECONDS:
            raise Shortfall(f"the event loop stood still for {self.longest_seconds:.2f} seconds")

    async def _beat(self) -> None:
        while True:
            self._beats += 1
            await asyncio.sleep(0.01)

    def _look_on(self) -> None:
        seen, still_seconds, last = self._beats, 0.0, time.monotonic()
        while not self._over.wait(0.01):
            now = time.monotonic()
            if self._beats != seen:
                seen, still_seconds = self._beats, 0.0
            else:
                still_seconds += min(now - last, 0.03)
                self.longest_seconds = max(self.longest_seconds, still_seconds)
            last = now


async def must_obey_cancellation(
    call: Callable[[], Awaitable[Any]], under_way: Callable[[], object], what: str
) -> None:
    """Start the call, wait until it is ``under_way``, cancel it; raises `Shortfall` unless it ends promptly
    as cancelled and leaves no task behind."""
    before = asyncio.all_tasks()
    work = asyncio.ensure_future(call())
    await until(under_way, f"{what} never got under way", ended=work)
    work.cancel()
    done, _ = await asyncio.wait({work}, timeout=PROMPTLY_SECONDS)
    if not done:
        raise Shortfall(f"{what} still ran {PROMPTLY_SECONDS:g} second after its cancellation")
    if not work.cancelled():
        raised = work.exception()
        came = told(raised if raised is not None else work.result())
        raise Shortfall(f"{what} answered its cancellation with {came}")
    left: set[asyncio.Task[Any]] = set()
    for _ in range(100):
        left = {task for task in asyncio.all_tasks() - before if task is not work and not task.done()}
        if not left:
            return
        await asyncio.sleep(0.01)
    names = sorted(getattr(task.get_coro(), "__qualname__", task.get_name()) for task in left)
    raise Shortfall(f"{what}, cancelled, left running: {', '.join(names)}")


async def until(
    condition: Callable[[], object], otherwise: str, *, ended: "asyncio.Future[Any] | None" = None
) -> None:
    """Wait in real time until the condition holds; raises `Shortfall` with ``otherwise`` where it does not,
    or where ``ended`` is done before."""
    for _ in range(int(_PATIENCE_SECONDS / 0.01)):
        if condition():
            return
        if ended is not None and ended.done():
            break
        await asyncio.sleep(0.01)
    else:
        raise Shortfall(otherwise)
    if not condition():
        came = ended.exception() if not ended.cancelled() else None
        raise Shortfall(f"{otherwise}: it ended with {told(came or 'a result')}")
