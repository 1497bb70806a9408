"""The gateway's process: what plugins do on their own neither ends it nor keeps it from ending (PLUG-7)."""

import asyncio
import contextlib
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import Any, TypeVar

from moorage.gateway.blame import owners, place, plugin_of, plugin_on_stack
from moorage.gateway.leftovers import task_frame
from moorage.host import PluginHost
from moorage.process_exit import SystemExitRaised, is_exit

log = logging.getLogger(__name__)
T = TypeVar("T")

LEAVING_SECONDS = 2.0
"""What cancelled tasks get at the end, and then threads."""


class Process:
    """Runs the main coroutine of a process, which ends for nothing else than its end or a signal.

    ``host``: where the plugins are told, once there is one.
    """

    def __init__(self, host: Callable[[], PluginHost | None] = lambda: None) -> None:
        self.host = host
        self._last = _LastResort(self._where)

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """The coroutine's result; raises what it raises, and what a signal's handler raises.

        Unlike ``asyncio.run`` it goes on when another task than the main one, or a callback, ends in a
        `SystemExit` of its own; what is still there at the end gets `LEAVING_SECONDS` and is named. Where
        threads are left that would keep the process for ever, it ends without them.
        """
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        status = 1
        try:
            result = self._drive(loop, loop.create_task(main))
            status = 0
            return result
        finally:
            try:
                self._end_tasks(loop)
            finally:
                asyncio.set_event_loop(None)
                loop.close()
                if any(not thread.daemon for thread in _others()):
                    self._last.ends_within(LEAVING_SECONDS, status)

    def ends_within(self, seconds: float) -> None:
        """From now on the process has this long to end; then it is ended with status 1, and what kept it is
        named. An end of the main coroutine leaves less time, and keeps its own status."""
        self._last.ends_within(seconds, 1)

    def _drive(self, loop: asyncio.AbstractEventLoop, task: "asyncio.Task[T]") -> T:
        while True:
            try:
                return loop.run_until_complete(task)
            except SystemExit as error:
                its_own = task.done() and not task.cancelled() and task.exception() is error
                if its_own or is_exit(error):
                    raise
                # The loop has merely stopped turning: nothing of it is lost.
                self._tell(error)

    def _tell(self, error: SystemExit) -> None:
        frames = []
        traceback = error.__traceback__
        while traceback is not None:
            frames.append(traceback.tb_frame)
            traceback = traceback.tb_next
        host = self.host()
        packages = owners(host.reports) if host is not None else {}
        for frame in reversed(frames):
            plugin = plugin_of(frame, packages)
            if host is not None and plugin is not None:
                host.account(plugin).told(f"ended a task of its own: {_exit(error)}, at {place(frame)}")
                return
        log.warning("a task of somebody's ended: %s, at %s", _exit(error), place(frames[-1]))

    def _end_tasks(self, loop: asyncio.AbstractEventLoop) -> None:
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        if tasks:
            self._drive(loop, loop.create_task(_waited(tasks)))
        for task in tasks:
            frame = task_frame(task)
            if task.done():
                if not task.cancelled() and (error := task.exception()) is not None:
                    log.warning("task %r failed when it was cancelled", task.get_name(), exc_info=error)
            elif frame is not None:
                what = f"task {task.get_name()!r}{self._where(frame)}"
                log.warning("%s, does not end when it is cancelled and is left behind", what)
        self._drive(loop, loop.create_task(_waited({loop.create_task(loop.shutdown_asyncgens())})))

    def _where(self, frame: FrameType) -> str:
        """`` of plugin 'name', at module:line (function)``; without the plugin where it is nobody's."""
        host = self.host()
        plugin, at = plugin_on_stack(frame, owners(host.reports) if host is not None else {})
        return (f" of plugin {plugin!r}" if plugin is not None else "") + f", at {place(at)}"


async def _waited(tasks: "set[asyncio.Task[Any]]") -> None:
    await asyncio.wait(tasks, timeout=LEAVING_SECONDS)


def _others() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread is not threading.current_thread()]


def _waits_for_others(thread: threading.Thread, frame: FrameType) -> bool:
    """Whether it is the main thread at its end, where it waits for all that are no daemons."""
    at: FrameType | None = frame
    while at is not None and at.f_back is not None:
        at = at.f_back
    return thread is threading.main_thread() and at is not None and at.f_code is _SHUTDOWN


_SHUTDOWN = getattr(getattr(threading, "_shutdown", None), "__code__", None)


def _exit(error: SystemExit) -> SystemExitRaised:
    return SystemExitRaised(error.code)


class _LastResort:
    """Ends the process when its time is up. Threads that are no daemons would keep it for ever."""

    def __init__(self, where: Callable[[FrameType], str]) -> None:
        self._where = where
        self._changed = threading.Condition()
        self._ends_at: float | None = None
        self._status = 1

    def ends_within(self, seconds: float, status: int) -> None:
        with self._changed:
            first = self._ends_at is None
            at = time.monotonic() + seconds
            self._ends_at = at if self._ends_at is None else min(at, self._ends_at)
            self._status = status
            self._changed.notify()
        if first:
            threading.Thread(target=self._watch, name="moorage-last-resort", daemon=True).start()

    def _watch(self) -> None:
        with self._changed:
            while self._ends_at is not None and (left := self._ends_at - time.monotonic()) > 0:
                self._changed.wait(left)
            status = self._status
        frames = sys._current_frames()
        for thread in threading.enumerate():
            frame = frames.get(thread.ident or 0)
            if thread.daemon or frame is None or _waits_for_others(thread, frame):
                continue
            log.error("the process ends though thread %r%s, goes on", thread.name, self._where(frame))
        with contextlib.suppress(Exception):
            sys.stdout.flush()
        os._exit(status)
