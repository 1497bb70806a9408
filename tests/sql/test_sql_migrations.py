"""Migrations: from nothing, at once, to exactly the tables that the code uses (OPS-2)."""

import asyncio
import concurrent.futures
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.pool import NullPool
from support.postgres import PostgresServer

from moorage.clock import SystemClock
from moorage.contract import ConfigError, StoreUnavailable
from moorage_drivers.sql.migrate import HEAD, MIGRATIONS, upgrade
from moorage_drivers.sql.models import metadata
from moorage_drivers.sql.store import open_memory, open_store
from moorage_drivers.sql.urls import parse_url


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'new' / 'folder' / 'moorage.db'}"
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    url = server.create(empty=True)
    yield url
    server.drop(url)


def engine_of(url: str) -> Engine:
    return create_engine(parse_url(url).url, poolclass=NullPool)


def differences(url: str) -> list[Any]:
    engine = engine_of(url)
    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "compare_server_default": True}
        )
        found: list[Any] = compare_metadata(context, metadata)
    engine.dispose()
    return found


@pytest.mark.req("OPS-2")
def test_migrations_make_the_tables_of_the_models(empty_url: str) -> None:
    assert upgrade(empty_url) == HEAD
    assert upgrade(empty_url) == HEAD

    assert differences(empty_url) == []


@pytest.mark.req("OPS-2")
def test_the_known_head_is_the_newest_revision() -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))

    assert ScriptDirectory.from_config(config).get_heads() == [HEAD]


@pytest.mark.req("OPS-2", "TASK-19")
def test_replicas_that_start_at_once_migrate_once(empty_url: str) -> None:
    code = "import sys; from moorage_drivers.sql.migrate import upgrade; print(upgrade(sys.argv[1]))"
    command = [sys.executable, "-c", code, empty_url]

    def migrate(_: int) -> str:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        return done.stdout.strip() + done.stderr

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert list(pool.map(migrate, range(4))) == [HEAD] * 4
    assert differences(empty_url) == []


@pytest.mark.req("OPS-2")
async def test_a_database_that_is_not_migrated_names_the_remedy(empty_url: str) -> None:
    with pytest.raises(StoreUnavailable, match="moorage db upgrade"):
        async with open_store(empty_url, SystemClock(), False):
            pass

    async with open_store(empty_url, SystemClock(), True) as store:
        await store.ping()
    async with open_store(empty_url, SystemClock(), False) as store:
        assert store.durable
        await store.ping()


@pytest.mark.req("OPS-2")
async def test_a_newer_database_is_left_alone(empty_url: str) -> None:
    upgrade(empty_url)
    engine = engine_of(empty_url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))

    for migrate in (True, False):
        with pytest.raises(StoreUnavailable, match="9999"):
            async with open_store(empty_url, SystemClock(), migrate):
                pass
    engine.dispose()


@pytest.mark.req("OPS-2")
async def test_looking_at_a_missing_file_does_not_create_it(tmp_path: Path) -> None:
    path = tmp_path / "absent" / "moorage.db"

    with pytest.raises(StoreUnavailable, match="db upgrade"):
        async with open_store(f"sqlite:///{path}", SystemClock(), False):
            pass

    assert not path.parent.exists()


@pytest.mark.req("OPS-2")
@pytest.mark.parametrize("scheme", ["sqlite", "sqlite+aiosqlite", "sqlite+pysqlite"])
async def test_every_spelling_of_sqlite_opens_the_same_file(tmp_path: Path, scheme: str) -> None:
    path = tmp_path / "moorage.db"
    async with open_store(f"{scheme}:///{path}", SystemClock(), True) as store:
        await store.threads.create("t1", "alice", {})

    assert path.stat().st_mode & 0o077 == 0
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("SELECT count(*) FROM threads").fetchone() == (1,)
    connection.close()


@pytest.mark.req("OPS-2")
@pytest.mark.parametrize("store_url", ["postgresql"], indirect=True)
async def test_every_spelling_of_postgresql_opens_the_same_database(store_url: str) -> None:
    for scheme in ("postgresql+psycopg", "postgresql", "postgres"):
        url = scheme + store_url.removeprefix("postgresql")
        async with open_store(url, SystemClock(), False) as store:
            await store.threads.create("t1", scheme, {})
            thread = await store.threads.get("t1")
    assert thread is not None
    assert thread.user_id == "postgresql+psycopg"


@pytest.mark.req("CRED-9")
@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:s3cret-word@127.0.0.1:1/db",
        "postgresql://me:s3cret-word@/db?host=/nonexistent&password=s3cret-word",
        "sqlite:////proc/none/x.db?key=s3cret-word",
        "mysql://me:s3cret-word@host/db",
        "s3cret-word",
        "postgresql://me:s3cret-word@host:port/db",
    ],
)
async def test_no_error_quotes_a_password(url: str, caplog: pytest.LogCaptureFixture) -> None:
    for migrate in (True, False):
        with pytest.raises((StoreUnavailable, ConfigError)) as caught:
            async with open_store(url, SystemClock(), migrate):
                pass
        chain: BaseException | None = caught.value
        assert "s3cret" not in str(chain)
        assert "s3cret" not in repr(chain)
    assert "s3cret" not in caplog.text


@pytest.mark.req("TASK-14")
async def test_a_memory_store_has_all_but_tasks() -> None:
    async with open_memory("memory://", SystemClock(), False) as store, asyncio.timeout(10):
        assert not store.durable
        await store.ping()
        await asyncio.gather(*(store.threads.create(f"t{n}", "alice", {"n": n}) for n in range(20)))
        event = await store.events.append("t1", event_type="x")
        await store.memos.put("a", 1)
        with pytest.raises(StoreUnavailable, match="MOORAGE_DATABASE_URL"):
            _ = store.tasks
        async with open_memory("memory://", SystemClock(), False) as other:
            assert await other.threads.get("t1") is None
    assert event is not None


@pytest.mark.req("TASK-14")
async def test_sqlite_in_memory_is_no_durable_store() -> None:
    for url in ("sqlite://", "sqlite:///:memory:"):
        with pytest.raises(StoreUnavailable, match="memory"):
            async with open_store(url, SystemClock(), True):
                pass
