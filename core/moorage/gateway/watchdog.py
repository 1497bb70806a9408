"""Names what blocks the event loop (PLUG-7)."""

import asyncio
import logging
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import FrameType

from moorage.gateway.blame import owners, place, plugin_on_stack
from moorage.host import PluginHost

log = logging.getLogger("moorage.watchdog")

BLOCKED_AFTER_SECONDS = 1.0
"""A loop that has not come round for this long is blocked."""


@asynccontextmanager
async def watchdog(host: PluginHost, *, after_seconds: float = BLOCKED_AFTER_SECONDS) -> AsyncIterator[None]:
    """While entered, a thread watches this event loop; what blocks it is logged once for each time, with
    the plugin whose code is on the stack, and counted as that plugin's failure."""
    loop, watch = asyncio.get_running_loop(), _Watch(host, threading.get_ident(), after_seconds)

    async def beat() -> None:
        while True:
            watch.beaten = time.monotonic()
            await asyncio.sleep(after_seconds / 4)

    beating = loop.create_task(beat(), name="watchdog")
    thread = threading.Thread(target=watch.run, name="moorage-watchdog", daemon=True)
    thread.start()
    try:
        yield
    finally:
        beating.cancel()
        watch.stopped.set()
        await asyncio.to_thread(thread.join)


class _Watch:
    def __init__(self, host: PluginHost, thread_id: int, after_seconds: float) -> None:
        self.beaten = time.monotonic()
        self.stopped = threading.Event()
        self._host = host
        self._thread_id = thread_id
        self._after = after_seconds

    def run(self) -> None:
        told: float | None = None
        while not self.stopped.wait(self._after / 4):
            beaten = self.beaten
            blocked = time.monotonic() - beaten
            if blocked < self._after or beaten == told:
                continue
            told = beaten
            self._tell(blocked, sys._current_frames().get(self._thread_id))

    def _tell(self, blocked: float, frame: FrameType | None) -> None:
        if frame is None:
            return
        at = place(frame)
        plugin, _ = plugin_on_stack(frame, owners(self._host.reports))
        if plugin is None:
            log.warning("the event loop is blocked for %.1f s, at %s", blocked, at)
            return
        log.warning("the event loop is blocked for %.1f s by plugin %r, at %s", blocked, plugin, at)
        self._host.record_failure(plugin, f"blocked the event loop for {blocked:.1f} s, at {at}")
