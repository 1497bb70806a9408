"""Something to sleep on that anybody may interrupt."""

import asyncio

from moorage.contract.clock import Clock


class Waker:
    """One sleeper, woken by `set` from any thread. A `set` while nobody sleeps is remembered."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._event = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def bind(self) -> None:
        """Belong to the running loop; called once, by the sleeper."""
        self._loop = asyncio.get_running_loop()

    def set(self) -> None:
        loop = self._loop
        if loop is None or loop.is_closed():
            return
        try:
            here = asyncio.get_running_loop() is loop
        except RuntimeError:
            here = False
        if here:
            self._event.set()
        else:
            loop.call_soon_threadsafe(self._event.set)

    async def wait(self, seconds: float | None = None) -> None:
        """Sleep until `set`, at most ``seconds``."""
        if seconds is None or self._event.is_set():
            await self._event.wait()
        elif seconds > 0:
            await self._race(seconds)
        else:
            await asyncio.sleep(0)
        self._event.clear()

    async def _race(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        racers = (loop.create_task(self._event.wait()), loop.create_task(self._clock.sleep(seconds)))
        try:
            await asyncio.wait(racers, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for racer in racers:
                racer.cancel()
