"""One rig per test, on the reference repository and on SQLite; no test may leave an asyncio task behind."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.clock import FakeClock
from support.faulty_tasks import FaultyTasks
from support.memory_tasks import MemoryTasks
from support.rig import Rig


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


# PostgreSQL uses its own clock for leases, which no test can move: see test_on_stores.py.
@pytest.fixture(params=["memory", "sqlite"])
async def repository(
    request: pytest.FixtureRequest, clock: FakeClock, tmp_path: Path
) -> AsyncIterator[FaultyTasks]:
    if request.param == "memory":
        yield _watched(FaultyTasks(MemoryTasks(clock)), clock)
        return
    from moorage_drivers.sql.store import open_store

    template: Path = request.getfixturevalue("sqlite_template")
    url = f"sqlite:///{shutil.copy(template, tmp_path / 'moorage.db')}"
    async with open_store(url, clock, False) as store:
        yield _watched(FaultyTasks(store.tasks), clock)


def _watched(repository: FaultyTasks, clock: FakeClock) -> FaultyTasks:
    clock.busy = lambda: repository.under_way
    return repository


@pytest.fixture
async def rig(repository: FaultyTasks, clock: FakeClock) -> AsyncIterator[Rig]:
    before = asyncio.all_tasks()
    rig = Rig(repository.as_repository, clock)
    yield rig
    await rig.service.aclose()
    left = asyncio.all_tasks() - before - {asyncio.current_task()}
    assert not left, f"left behind: {left}"
