"""The gateway's background loops."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager

log = logging.getLogger(__name__)

RESTART_AFTER_SECONDS = 1.0


@asynccontextmanager
async def running(loops: Mapping[str, Callable[[], Coroutine[None, None, None]]]) -> AsyncIterator[None]:
    """Run each loop until the block is left, then cancel and await all of them (TASK-11).

    A loop that raises is logged and started anew, so that one bug never ends polling for good.
    """
    tasks = [asyncio.create_task(_kept_alive(name, loop), name=name) for name, loop in loops.items()]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _kept_alive(name: str, loop: Callable[[], Coroutine[None, None, None]]) -> None:
    while True:
        try:
            await loop()
            return
        except Exception:
            log.exception("background loop %r failed and is started again", name)
            await asyncio.sleep(RESTART_AFTER_SECONDS)
