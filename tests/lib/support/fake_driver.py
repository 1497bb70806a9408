"""A task driver and its remote, which misbehave on demand."""

import asyncio
import itertools
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from moorage.contract import (
    ServerClaim,
    ServerConfig,
    SubmitCall,
    TaskAnswer,
    TaskHandle,
    TaskRef,
    TaskSnapshot,
    TaskStatus,
)

Step = TaskSnapshot | BaseException | Callable[[TaskRef], Awaitable[Any]] | Any


def working(**fields: Any) -> TaskSnapshot:
    return TaskSnapshot(status=TaskStatus.WORKING, **fields)


def completed(result: Any = None, **fields: Any) -> TaskSnapshot:
    return TaskSnapshot(status=TaskStatus.COMPLETED, result=result, **fields)


def failed(error: str | None = None, **fields: Any) -> TaskSnapshot:
    return TaskSnapshot(status=TaskStatus.FAILED, error=error, **fields)


def cancelled() -> TaskSnapshot:
    return TaskSnapshot(status=TaskStatus.CANCELLED)


def asking(request: Any, **fields: Any) -> TaskSnapshot:
    return TaskSnapshot(status=TaskStatus.INPUT_REQUIRED, input_required=request, **fields)


async def hang(*_: object) -> Any:
    """Never answers; obeys a cancellation."""
    await asyncio.Event().wait()


async def hang_stubbornly(*_: object) -> Any:
    """Never answers and swallows the first cancellation."""
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        await asyncio.sleep(0.05)
    return working()


class FakeDriver:
    """Answers from scripts: a snapshot is returned, an exception raised, a function awaited.

    A script is per remote id, or under ``"*"`` for all of them; each step answers one call, the last one
    again and again. ``polls``, ``cancels`` and ``submits`` record every call as it begins.
    """

    def __init__(self) -> None:
        self._ids = itertools.count(1)
        self.on_submit: list[Step] = []
        self.on_poll: dict[str, list[Step]] = defaultdict(list)
        self.on_cancel: dict[str, list[Step]] = defaultdict(list)
        self.on_respond: dict[str, list[Step]] = defaultdict(list)
        self.submits: list[SubmitCall] = []
        self.polls: list[str] = []
        self.refs: list[TaskRef] = []
        self.cancels: list[str] = []
        self.answers: list[tuple[str, TaskAnswer]] = []
        self.under_way = 0
        self.most_under_way = 0

    def claim(self, server: ServerConfig, tool_names: Sequence[str]) -> ServerClaim:
        return ServerClaim()

    async def submit(self, call: SubmitCall) -> TaskHandle:
        self.submits.append(call)
        remote_id = f"r{next(self._ids)}"
        step = _next(self.on_submit)
        if step is None:
            return TaskHandle(remote_id)
        if isinstance(step, TaskSnapshot):
            return TaskHandle(remote_id, step)
        handle: TaskHandle = await _play(step, call)
        return handle

    async def get_status(self, ref: TaskRef) -> TaskSnapshot:
        self.polls.append(ref.remote_id)
        self.refs.append(ref)
        return await self._answer(self.on_poll, ref, working())

    async def cancel(self, ref: TaskRef) -> TaskSnapshot:
        self.cancels.append(ref.remote_id)
        return await self._answer(self.on_cancel, ref, cancelled())

    async def _answer(
        self, scripts: dict[str, list[Step]], ref: TaskRef, usual: TaskSnapshot
    ) -> TaskSnapshot:
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            step = _next(scripts[ref.remote_id] if scripts.get(ref.remote_id) else scripts["*"])
            snapshot: TaskSnapshot = usual if step is None else await _play(step, ref)
            return snapshot
        finally:
            self.under_way -= 1


class FakeRespondingDriver(FakeDriver):
    """A `FakeDriver` that takes answers."""

    async def respond(self, ref: TaskRef, answer: TaskAnswer) -> TaskSnapshot:
        self.answers.append((ref.remote_id, answer))
        return await self._answer(self.on_respond, ref, working())


def _next(script: list[Step]) -> Step:
    if not script:
        return None
    return script.pop(0) if len(script) > 1 else script[0]


async def _play(step: Step, argument: Any) -> Any:
    if isinstance(step, BaseException):
        raise step
    if callable(step):
        return await step(argument)
    return step
