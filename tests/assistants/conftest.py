from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from support.memory_runs import MemoryStore
from support.runs import run_service

from moorage.clock import SystemClock
from moorage.contract import GatewayContext, RunLauncher, ToolSource
from moorage.runs.service import RunService
from moorage_drivers.assistants.checkpoints import open_checkpoints
from moorage_drivers.assistants.direct import DirectAssistant


class NoExtensions:
    pass


def gateway_context_for(home: Path, url: str, store: Any = None, settings: Any = None) -> GatewayContext:
    return GatewayContext(
        home=home,
        replica_id="r1",
        database_url=url,
        clock=SystemClock(),
        extensions=NoExtensions(),  # type: ignore[arg-type]
        settings=settings or {},
        store=store,
    )


class GraphRig:
    """A gateway context with checkpoints, and services of assistants on it."""

    def __init__(self, context: GatewayContext, store: MemoryStore, stack: AsyncExitStack) -> None:
        self.context, self.store, self._stack = context, store, stack

    async def service(
        self, tools: ToolSource | None = None, assistants: dict[str, Any] | None = None, **options: Any
    ) -> RunService:
        made = assistants or {"direct": DirectAssistant(self.context)}
        service = run_service(self.store, self.store.clock, made, tools=tools, **options)
        self.context.provide(RunLauncher, service)
        await self._stack.enter_async_context(service.running())
        return service


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[GraphRig]:
    store = MemoryStore(SystemClock())
    context = gateway_context_for(tmp_path, f"sqlite:///{tmp_path / 'moorage.sqlite'}", store)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(open_checkpoints(context))
        yield GraphRig(context, store, stack)
