from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
from support.runs import FixedTools, ScriptedAssistant, run_service

from moorage.clock import SystemClock
from moorage.contract import Store
from moorage.runs.service import RunService

MakeService = Callable[..., Awaitable[RunService]]


@pytest.fixture
def echo() -> ScriptedAssistant:
    return ScriptedAssistant()


@pytest.fixture
def run_tools() -> FixedTools:
    return FixedTools()


@pytest.fixture
async def make_service(
    store: Store, echo: ScriptedAssistant, run_tools: FixedTools
) -> AsyncIterator[MakeService]:
    """Running services on one store, as replicas are; ended with the test."""
    async with AsyncExitStack() as stack:

        async def make(**options: Any) -> RunService:
            clock = options.pop("clock", SystemClock())
            assistants = options.pop("assistants", {"echo": echo})
            made = run_service(store, clock, assistants, **{"tools": run_tools, **options})
            await stack.enter_async_context(made.running())
            return made

        yield make


@pytest.fixture
async def service(make_service: MakeService) -> RunService:
    return await make_service()
