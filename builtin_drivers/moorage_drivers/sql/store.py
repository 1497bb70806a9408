"""`Store` on SQL, and how it is opened."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from sqlalchemy import text

from moorage.contract import (
    Clock,
    EventRepository,
    KeyRepository,
    MemoRepository,
    RunRepository,
    Store,
    StoreUnavailable,
    StreamRepository,
    TaskRepository,
    ThreadRepository,
)
from moorage_drivers.sql.database import Database
from moorage_drivers.sql.events import SqlEvents
from moorage_drivers.sql.keys import SqlKeys
from moorage_drivers.sql.memos import SqlMemos
from moorage_drivers.sql.migrate import check_revision, create_all, current_revision, upgrade
from moorage_drivers.sql.postgres import PostgresDatabase
from moorage_drivers.sql.runs import SqlRuns
from moorage_drivers.sql.signals import Heard
from moorage_drivers.sql.sqlite import SqliteDatabase
from moorage_drivers.sql.streams import SqlStreams
from moorage_drivers.sql.tasks import SqlTasks
from moorage_drivers.sql.threads import SqlThreads
from moorage_drivers.sql.urls import DatabaseUrl, parse_url


class SqlStore:
    """An open store on one database (`moorage.contract.Store`)."""

    def __init__(self, database: Database, *, durable: bool = True) -> None:
        self._database = database
        self._tasks = SqlTasks(database)
        self.threads: ThreadRepository = SqlThreads(database)
        self.runs: RunRepository = SqlRuns(database)
        self.events: EventRepository = SqlEvents(database)
        self.keys: KeyRepository = SqlKeys(database)
        self.memos: MemoRepository = SqlMemos(database)
        self.streams: StreamRepository | None = SqlStreams(database)
        self.durable = durable

    @property
    def tasks(self) -> TaskRepository:
        """Raises `StoreUnavailable` on a memory store (TASK-14)."""
        if not self.durable:
            raise StoreUnavailable(
                "durable tasks need a SQL store: set MOORAGE_DATABASE_URL to SQLite or PostgreSQL"
            )
        return self._tasks

    def watch(self, heard: Heard) -> AbstractAsyncContextManager[None]:
        return self._database.signals.watch(heard)

    async def ping(self) -> None:
        await self._database.read(lambda connection: connection.execute(text("SELECT 1")).all())


@asynccontextmanager
async def open_store(url: str, clock: Clock, migrate: bool) -> AsyncIterator[Store]:
    """Open SQLite or PostgreSQL.

    Raises `ConfigError` for a URL that cannot be read, `StoreUnavailable` where the database cannot be
    reached or is not up to date and ``migrate`` is false.
    """
    where = parse_url(url)
    if where.sqlite and where.path is None:
        raise StoreUnavailable("SQLite in memory forgets everything: name a file, or use memory://")
    await asyncio.to_thread(_prepare, url, where, migrate)
    database = _database(where, clock)
    try:
        yield SqlStore(database)
    finally:
        await database.aclose()


@asynccontextmanager
async def open_memory(url: str, clock: Clock, migrate: bool) -> AsyncIterator[Store]:
    """Open a store that lives and dies with its block, and has no durable tasks (TASK-14)."""
    database = SqliteDatabase(parse_url("sqlite://"), clock)
    try:
        await database.write(create_all)
        yield SqlStore(database, durable=False)
    finally:
        await database.aclose()


def _prepare(url: str, where: DatabaseUrl, migrate: bool) -> None:
    revision = upgrade(url) if migrate else current_revision(where)
    check_revision(revision, where)


def _database(where: DatabaseUrl, clock: Clock) -> Database:
    return SqliteDatabase(where, clock) if where.sqlite else PostgresDatabase(where, clock)
