"""Databases for whoever needs a real store: every test of ``store_url`` or ``store`` runs on both."""

import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.postgres import PostgresServer, postgres_server

from moorage.clock import SystemClock
from moorage.contract import Clock, Store


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server of this worker's own, started when the first test asks for it."""
    with postgres_server() as server:
        yield server


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite file to copy."""
    from moorage_drivers.sql.migrate import upgrade

    path = tmp_path_factory.mktemp("sqlite") / "template.db"
    upgrade(f"sqlite:///{path}")
    return path


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a migrated, empty database of this test's own."""
    with ExitStack() as stack:
        if request.param == "sqlite":
            template: Path = request.getfixturevalue("sqlite_template")
            yield f"sqlite:///{shutil.copy(template, tmp_path / 'moorage.db')}"
        else:
            server: PostgresServer = request.getfixturevalue("postgres")
            url = server.create()
            stack.callback(server.drop, url)
            yield url


@pytest.fixture
def store_clock() -> Clock:
    """The clock that ``store`` is opened with; override it to own the time."""
    return SystemClock()


@pytest.fixture
async def store(store_url: str, store_clock: Clock) -> AsyncIterator[Store]:
    """An open store on ``store_url``."""
    from moorage_drivers.sql.store import open_store

    async with open_store(store_url, store_clock, False) as opened:
        yield opened
