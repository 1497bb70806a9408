"""How SQLite is driven: one writer, many readers, other processes beside (TASK-6)."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import IntegrityError
from support.clock import eventually

from moorage.clock import SystemClock
from moorage.contract import StoreUnavailable
from moorage_drivers.sql import sqlite
from moorage_drivers.sql.migrate import upgrade
from moorage_drivers.sql.sqlite import SqliteDatabase
from moorage_drivers.sql.urls import parse_url


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[SqliteDatabase]:
    upgrade(f"sqlite:///{tmp_path / 'moorage.db'}")
    database = SqliteDatabase(parse_url(f"sqlite:///{tmp_path / 'moorage.db'}"), SystemClock())
    yield database
    await database.aclose()
    assert not [t for t in threading.enumerate() if t.name.startswith("moorage-sqlite")]


def put(name: str) -> Any:
    return lambda connection: connection.execute(
        text("INSERT INTO memos (name, value) VALUES (:name, '1')"), {"name": name}
    )


async def names(database: SqliteDatabase) -> set[str]:
    rows = await database.read(lambda connection: connection.execute(text("SELECT name FROM memos")).all())
    return {row.name for row in rows}


class Gate:
    """A unit that keeps the writer busy until it is opened, so that others queue up behind it."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self._open = threading.Event()

    def __call__(self, connection: Connection) -> None:
        self.entered.set()
        assert self._open.wait(20)

    def open(self) -> None:
        self._open.set()


@pytest.mark.req("TASK-6")
async def test_what_queues_up_is_committed_together_and_fails_apart(database: SqliteDatabase) -> None:
    commits: list[int] = []
    gate = Gate()

    def counting(connection: Connection) -> None:
        put("counted")(connection)
        commits.append(connection.scalar(text("SELECT count(*) FROM memos")) or 0)

    held = asyncio.create_task(database.write(gate))
    await asyncio.to_thread(gate.entered.wait, 20)
    rest = [asyncio.create_task(database.write(put(f"n{number % 9}"))) for number in range(10)]
    last = asyncio.create_task(database.write(counting))
    await asyncio.sleep(0)
    gate.open()
    results = await asyncio.gather(held, *rest, last, return_exceptions=True)

    assert [type(result) for result in results if isinstance(result, BaseException)] == [IntegrityError]
    assert await names(database) == {*(f"n{number}" for number in range(9)), "counted"}
    assert commits == [10]


@pytest.mark.req("TASK-6")
async def test_a_caller_that_leaves_before_its_turn_writes_nothing(database: SqliteDatabase) -> None:
    gate = Gate()
    held = asyncio.create_task(database.write(gate))
    await asyncio.to_thread(gate.entered.wait, 20)
    gone = asyncio.create_task(database.write(put("gone")))
    stays = asyncio.create_task(database.write(put("stays")))
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.gather(gone, return_exceptions=True)
    gate.open()
    await asyncio.gather(held, stays)

    assert await names(database) == {"stays"}


@pytest.mark.req("TASK-6")
async def test_reads_go_on_while_another_process_writes(
    database: SqliteDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = sqlite3.connect(tmp_path / "moorage.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    other.execute("INSERT INTO memos VALUES ('other', '1')")
    waiting = asyncio.create_task(database.write(put("mine")))

    assert await names(database) == set()
    assert not waiting.done()
    other.execute("COMMIT")
    other.close()
    await waiting

    assert await names(database) == {"other", "mine"}


@pytest.mark.req("TASK-6")
async def test_a_database_that_stays_locked_is_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_SECONDS", 0.05)
    path = tmp_path / "moorage.db"
    upgrade(f"sqlite:///{path}")
    database = SqliteDatabase(parse_url(f"sqlite:///{path}"), SystemClock())
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(StoreUnavailable, match="locked"):
        await database.write(put("mine"))

    other.close()
    await database.write(put("mine"))
    await database.aclose()
    with pytest.raises(StoreUnavailable, match="closed"):
        await database.write(put("late"))


@pytest.mark.req("TASK-6")
async def test_closing_finishes_what_was_submitted(tmp_path: Path) -> None:
    path = tmp_path / "moorage.db"
    upgrade(f"sqlite:///{path}")
    database = SqliteDatabase(parse_url(f"sqlite:///{path}"), SystemClock())
    gate = Gate()
    held = asyncio.create_task(database.write(gate))
    await asyncio.to_thread(gate.entered.wait, 20)
    last = asyncio.create_task(database.write(put("last")))
    await asyncio.sleep(0)
    closing = asyncio.create_task(database.aclose())
    gate.open()
    await asyncio.gather(held, last, closing)

    connection = sqlite3.connect(path)
    assert connection.execute("SELECT name FROM memos").fetchall() == [("last",)]
    connection.close()


@pytest.mark.req("TOOL-6")
async def test_a_store_serves_another_event_loop(database: SqliteDatabase) -> None:
    done = threading.Event()

    def elsewhere() -> None:
        asyncio.run(database.write(put("from another loop")))
        done.set()

    thread = threading.Thread(target=elsewhere)
    thread.start()
    await eventually(done.is_set)
    thread.join()

    assert await names(database) == {"from another loop"}


@pytest.mark.req("OPS-2")
def test_a_sqlite_that_is_too_old_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "OLDEST_SQLITE", (99, 1, 0))

    with pytest.raises(StoreUnavailable, match=r"99\.1\.0"):
        upgrade(f"sqlite:///{tmp_path / 'moorage.db'}")
