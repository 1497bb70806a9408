"""A gateway made of memory, for tests of the HTTP layer: real runs, a fake assistant and store."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from moorage.clock import SystemClock
from moorage.config import ConfigView
from moorage.contract import (
    AssistantEvent,
    GatewayContext,
    GatewayTool,
    RunContext,
    ServerState,
    Store,
    ThreadState,
)
from moorage.runs.service import NamedAssistant, NamedValidator, RunService
from moorage.settings import Settings
from support.memory_store import MemoryStore


class EchoAssistant:
    """Answers each message with its text; ``wait`` in a text waits for `release`, ``fail`` raises."""

    def __init__(self) -> None:
        self.states: dict[str, list[ThreadState]] = {}
        self.seen: list[RunContext] = []
        self.release = asyncio.Event()
        self.waiting = asyncio.Event()
        self.cancelled = asyncio.Event()

    async def stream(self, run: RunContext, input: Any) -> AsyncIterator[AssistantEvent]:  # noqa: A002
        self.seen.append(run)
        messages = list(self._values(run.thread_id).get("messages", []))
        given = list((input or {}).get("messages", []))
        text = str(given[-1]["content"]) if given else ""
        yield AssistantEvent("values", {"messages": [*messages, *given]})
        if "wait" in text:
            self.waiting.set()
            try:
                await self.release.wait()
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
        if "fail" in text:
            raise ValueError("the model has no idea")
        answer = {"type": "ai", "role": "assistant", "content": text}
        yield AssistantEvent("updates", {"echo": {"messages": [answer]}})
        yield AssistantEvent("custom", {"progress": 1})
        state = self._keep(run.thread_id, {"messages": [*messages, *given, answer]}, run.run_id)
        yield AssistantEvent("values", dict(state.values))

    def _values(self, thread_id: str) -> Any:
        states = self.states.get(thread_id)
        return states[0].values if states else {}

    def _keep(self, thread_id: str, values: Any, run_id: str | None = None) -> ThreadState:
        states = self.states.setdefault(thread_id, [])
        parent = states[0].checkpoint_id if states else None
        state = ThreadState(
            values=values,
            checkpoint_id=f"c{len(states) + 1}",
            parent_checkpoint_id=parent,
            metadata={"run_id": run_id} if run_id else {},
            created_at=datetime.now(UTC),
        )
        states.insert(0, state)
        return state

    async def state(self, thread_id: str, *, checkpoint_id: str | None = None) -> ThreadState | None:
        states = self.states.get(thread_id, [])
        return next((one for one in states if checkpoint_id in (None, one.checkpoint_id)), None)

    async def history(
        self, thread_id: str, *, limit: int = 10, before: str | None = None
    ) -> AsyncIterator[ThreadState]:
        passed = before is None
        left = limit
        for state in list(self.states.get(thread_id, [])):
            if passed and left:
                left -= 1
                yield state
            passed = passed or state.checkpoint_id == before

    async def update_state(
        self, thread_id: str, values: Any, *, as_node: str | None = None, checkpoint_id: str | None = None
    ) -> ThreadState:
        return self._keep(
            thread_id, {**self._values(thread_id), **(values if isinstance(values, dict) else {})}
        )

    async def delete_thread(self, thread_id: str) -> None:
        self.states.pop(thread_id, None)


class FakeTools:
    """A `ToolSource` with one server."""

    def __init__(self) -> None:
        self.resets = 0
        self.probes = 0

    async def tools(self, context: Any) -> list[GatewayTool]:
        return [GatewayTool("jobs_look", "look", "jobs", "Looks.", {"type": "object"}, native=object())]

    async def servers(self, *, probe: bool = False) -> list[ServerState]:
        self.probes += probe
        return [ServerState("jobs", "http", True, "ready", tool_count=1)]

    async def reset(self) -> None:
        self.resets += 1

    async def close_thread(self, user_id: str, thread_id: str) -> None:
        return None


class NoHost:
    """A plugin host without plugins."""

    reports: tuple[Any, ...] = ()

    def as_dicts(self) -> list[dict[str, Any]]:
        return []

    def authenticators(self) -> list[Any]:
        return []


class EmptyConfiguration:
    """A `ConfigAdministration` of a file without servers, which cannot be changed."""

    async def view(self) -> ConfigView:
        return ConfigView({"mcpServers": {}}, '"empty"')


class FakeGateway:
    """What the routes touch, and no more."""

    def __init__(self, *, host: Any = None, validators: tuple[NamedValidator, ...] = ()) -> None:
        self.settings = Settings(home=Path("unused"), database_url="memory:")
        self.store = MemoryStore(SystemClock())
        self.host = host or NoHost()
        self.context: GatewayContext | None = None
        self.tools = FakeTools()
        self.administration = EmptyConfiguration()
        self.tasks: Any = None
        self.tasks_unavailable: str | None = "no task driver is installed"
        self.assistant = EchoAssistant()
        self.opened = self.closed = 0
        self._validators = validators

    @asynccontextmanager
    async def open(self) -> AsyncIterator["FakeGateway"]:
        self.opened += 1
        self.runs = RunService(
            store=cast("Store", self.store),
            assistants={"echo": NamedAssistant("echo", "Says the same.", self.assistant)},
            validators=self._validators,
            tools=self.tools,
            clock=SystemClock(),
            replica_id="replica-1",
            settings=self.settings,
        )
        try:
            async with self.runs.running():
                yield self
        finally:
            self.closed += 1
