"""A run service with assistants that a test scripts."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from moorage.contract import (
    AssistantEvent,
    CallContext,
    Clock,
    GatewayTool,
    Principal,
    RunContext,
    RunRequest,
    ThreadState,
)
from moorage.runs.request import run_request
from moorage.runs.service import NamedAssistant, NamedValidator, RunService
from moorage.settings import LimitSettings, RunSettings, Settings

ALICE = Principal("alice")
BOB = Principal("bob")


class ScriptedAssistant:
    """Answers each run with what ``script`` does; keeps what it was given."""

    def __init__(self, script: Callable[[RunContext], Awaitable[Any]] | None = None) -> None:
        self.script = script
        self.runs: list[RunContext] = []
        self.states: dict[str, list[ThreadState]] = {}
        self.forgotten: list[str] = []

    async def stream(self, run: RunContext, input: Any) -> AsyncIterator[AssistantEvent]:  # noqa: A002
        self.runs.append(run)
        yield AssistantEvent("values", {"input": input})
        answer = await self.script(run) if self.script is not None else None
        yield AssistantEvent("updates", {"answer": {"output": answer}})
        values = {"input": input, "output": answer}
        kept = self.states.setdefault(run.thread_id, [])
        kept.insert(
            0,
            ThreadState(
                values=values, checkpoint_id=f"c{len(kept)}", metadata={**run.metadata, "run_id": run.run_id}
            ),
        )
        yield AssistantEvent("values", values)

    async def state(self, thread_id: str, *, checkpoint_id: str | None = None) -> ThreadState | None:
        kept = self.states.get(thread_id, [])
        return next((s for s in kept if checkpoint_id in (None, s.checkpoint_id)), None)

    async def history(
        self, thread_id: str, *, limit: int = 10, before: str | None = None
    ) -> AsyncIterator[ThreadState]:
        for state in self.states.get(thread_id, [])[:limit]:
            yield state

    async def update_state(
        self, thread_id: str, values: Any, *, as_node: str | None = None, checkpoint_id: str | None = None
    ) -> ThreadState:
        kept = self.states.setdefault(thread_id, [])
        if as_node == "__copy__":
            values = next(s.values for s in kept if s.checkpoint_id == checkpoint_id)
        kept.insert(0, ThreadState(values=values, checkpoint_id=f"c{len(kept)}"))
        return kept[0]

    async def delete_thread(self, thread_id: str) -> None:
        self.forgotten.append(thread_id)
        self.states.pop(thread_id, None)


class FixedTools:
    """A tool source of fixed tools that remembers whose sessions were closed."""

    def __init__(self, tools: Sequence[GatewayTool] = ()) -> None:
        self.given = tools
        self.calls: list[CallContext] = []
        self.closed: list[tuple[str, str]] = []

    async def tools(self, context: CallContext) -> Sequence[GatewayTool]:
        self.calls.append(context)
        return self.given

    async def servers(self, *, probe: bool = False) -> Sequence[Any]:
        return ()

    async def reset(self) -> None:
        return None

    async def close_thread(self, user_id: str, thread_id: str) -> None:
        self.closed.append((user_id, thread_id))


def run_service(
    store: Any,
    clock: Clock,
    assistants: Mapping[str, Any],
    *,
    tools: Any = None,
    validators: Sequence[NamedValidator] = (),
    replica: str = "r1",
    limits: LimitSettings | None = None,
    lease_seconds: float = 20.0,
    **options: Any,
) -> RunService:
    named = {name: NamedAssistant(name, f"the assistant {name}", made) for name, made in assistants.items()}
    return RunService(
        store=store,
        assistants=named,
        validators=validators,
        tools=tools or FixedTools(),
        clock=clock,
        replica_id=replica,
        settings=Settings(
            home=Path(),
            database_url="memory://",
            limits=limits or LimitSettings(),
            runs=RunSettings(lease_seconds=lease_seconds),
        ),
        **options,
    )


def request(thread_id: str | None = "t1", principal: Principal = ALICE, **body: Any) -> RunRequest:
    """A request as the API builds it from a body."""
    return run_request(
        {"assistant_id": "echo", **body}, thread_id=thread_id, principal=principal, limits=LimitSettings()
    )


async def kill(service: RunService) -> None:
    """The process of this service is gone: its work ends without a word to the store."""

    async def dead(*_: Any, **__: Any) -> None:
        raise ConnectionError("the process is dead")

    vars(service._journal)["conclude"] = dead
    tasks = [execution.task for execution in service._executor.all() if execution.task is not None]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def until(condition: Callable[[], Any], within: float = 10.0) -> None:
    """Wait in real time for a condition, or for what a coroutine function answers to be true."""
    deadline = time.monotonic() + within
    while True:
        answer = condition()
        if asyncio.iscoroutine(answer):
            answer = await answer
        if answer:
            return
        assert time.monotonic() < deadline, "the condition did not come true in time"
        await asyncio.sleep(0.01)
