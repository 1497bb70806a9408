"""Names the tasks that plugins leave behind at the end (PLUG-7)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import FrameType
from typing import Any

from moorage.gateway.blame import owners, place, plugin_of
from moorage.host import PluginHost


@asynccontextmanager
async def leftovers(host: PluginHost) -> AsyncIterator[None]:
    """When it is left, each task that was begun meanwhile with a plugin's coroutine, and that nobody has
    cancelled, is told to be that plugin's fault. It is not ended here: that is up to who owns the loop."""
    before = asyncio.all_tasks()
    try:
        yield
    finally:
        packages = owners(host.reports)
        for task in asyncio.all_tasks() - before:
            frame = task_frame(task)
            plugin = plugin_of(frame, packages) if frame is not None and not task.cancelling() else None
            if frame is not None and plugin is not None and task is not asyncio.current_task():
                host.account(plugin).told(f"left the task {task.get_name()!r} behind, at {place(frame)}")


def task_frame(task: "asyncio.Task[Any]") -> FrameType | None:
    """Where the task's own coroutine is; None where that is not known."""
    frame = getattr(task.get_coro(), "cr_frame", None)
    return frame if isinstance(frame, FrameType) else None
