"""What all suites watch for: a loop that stands still, calls that outlive their cancellation."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from moorage.testing.checks import Shortfall, told

PROMPTLY_SECONDS = 1.0
LONGEST_BLOCK_SECONDS = 0.25
_PATIENCE_SECONDS = 6.0


class Heartbeat:
    """How long the event loop stood still while the block ran, at most."""

    longest_seconds = 0.0

    async def __aenter__(self) -> "Heartbeat":
        self._task = asyncio.ensure_future(self._beat())
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.sleep(0.02)
        self._task.cancel()
        await asyncio.wait({self._task})

    def must_be_steady(self) -> None:
        """Raises `Shortfall` where it stood still for too long."""
        if self.longest_seconds > LONGEST_BLOCK_SECONDS:
            raise Shortfall(f"the event loop stood still for {self.longest_seconds:.2f} seconds")

    async def _beat(self) -> None:
        loop = asyncio.get_running_loop()
        last = loop.time()
        while True:
            await asyncio.sleep(0.01)
            self.longest_seconds = max(self.longest_seconds, loop.time() - last - 0.01)
            last = loop.time()


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
