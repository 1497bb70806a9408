"""One rig per test; every test must leave no asyncio task behind."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from support.clock import FakeClock
from support.memory_tasks import MemoryTasks
from support.rig import Rig


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def repository(clock: FakeClock) -> MemoryTasks:
    return MemoryTasks(clock)


@pytest.fixture
async def rig(repository: MemoryTasks, clock: FakeClock) -> AsyncIterator[Rig]:
    rig = Rig(repository, clock)
    yield rig
    await rig.service.aclose()
    left = {task for task in asyncio.all_tasks() if task is not asyncio.current_task()}
    assert not left, f"left behind: {left}"
