from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from support.dumping import dump
from support.runs import run_service

from moorage.clock import SystemClock
from moorage.contract import GatewayContext, RunLauncher, Store, ToolSource
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

    def __init__(self, context: GatewayContext, store: Store, stack: AsyncExitStack) -> None:
        self.context, self.store, self._stack = context, store, stack

    def dump(self) -> str:
        """All that is stored, checkpoints included."""
        return dump(self.context.database_url, self.context.home)

    async def another(self) -> "GraphRig":
        """Another process on the same home and database."""
        context = gateway_context_for(self.context.home, self.context.database_url, self.store)
        await self._stack.enter_async_context(open_checkpoints(context))
        return GraphRig(context, self.store, self._stack)

    async def service(
        self,
        tools: ToolSource | None = None,
        assistants: dict[str, Any] | None = None,
        *,
        running: bool = True,
        **options: Any,
    ) -> RunService:
        made = assistants or {"direct": DirectAssistant(self.context)}
        service = run_service(self.store, self.context.clock, made, tools=tools, **options)
        self.context.provide(RunLauncher, service)
        if not running:
            return service
        await self._stack.enter_async_context(service.running())
        return service


@pytest.fixture
async def rig(tmp_path: Path, store_url: str, store: Store) -> AsyncIterator[GraphRig]:
    context = gateway_context_for(tmp_path, store_url, store)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(open_checkpoints(context))
        yield GraphRig(context, store, stack)


@pytest.fixture
def rig_context(tmp_path: Path) -> GatewayContext:
    """A context without a store."""
    return gateway_context_for(tmp_path, "memory://")
