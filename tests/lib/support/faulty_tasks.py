"""Any `TaskRepository`, with faults on demand."""

import functools
import inspect
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Any, cast

from moorage.contract import TaskFilter, TaskRecord, TaskRepository


class FaultyTasks:
    """Passes every call on to ``inner``.

    ``faults[method]`` holds what to raise (an exception) or await (a function) before a call of that
    method, one entry a call; None lets a call pass. ``calls`` counts them.
    """

    def __init__(self, inner: TaskRepository) -> None:
        self._inner = inner
        self.faults: dict[str, list[Any]] = defaultdict(list)
        self.calls: dict[str, int] = defaultdict(int)
        self.under_way = 0
        """Calls that ``inner`` is working on."""

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        if not inspect.iscoroutinefunction(method):
            return method
        return functools.partial(self._call, name, method)

    async def _call(
        self, name: str, method: Callable[..., Awaitable[Any]], *arguments: Any, **options: Any
    ) -> Any:
        self.calls[name] += 1
        script = self.faults[name]
        fault = script.pop(0) if script else None
        if isinstance(fault, BaseException):
            raise fault
        if fault is not None:
            await fault()
        self.under_way += 1
        try:
            return await method(*arguments, **options)
        finally:
            self.under_way -= 1

    @property
    def as_repository(self) -> TaskRepository:
        return cast("TaskRepository", self)

    async def rows(self) -> list[TaskRecord]:
        """All of them, newest first; counted nowhere and never faulty."""
        return list((await self._inner.list(TaskFilter(limit=200))).items)

    async def only_row(self) -> TaskRecord:
        (row,) = await self.rows()
        return row

    async def free(self) -> set[str]:
        """The tasks that are due and under nobody's lease; leases them for a moment to find out."""
        claims = await self._inner.claim("onlooker", limit=200, lease_seconds=60)
        return set(await self._inner.release({claim.task.task_id: claim.token for claim in claims}))
