"""SQLite: one writer thread, a few readers, all in WAL mode.

SQLite lets one connection write at a time, and many that want to only disturb each other. So all writes
of the process go through one thread, which commits whatever has queued up meanwhile in one transaction:
under load, one fsync serves many submissions.
"""

import asyncio
import os
import queue
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.pool import QueuePool, StaticPool

from moorage.contract import Clock, StoreUnavailable
from moorage_drivers.sql import dialects
from moorage_drivers.sql.database import Unit
from moorage_drivers.sql.failures import unavailable
from moorage_drivers.sql.signals import LocalSignals
from moorage_drivers.sql.urls import DatabaseUrl

T = TypeVar("T")

BUSY_TIMEOUT_SECONDS = 15.0
_MOST_IN_ONE_COMMIT = 256
_READERS = 4
OLDEST_SQLITE = (3, 35, 0)
"""The first with RETURNING and materialised common table expressions."""
_WRITER_PRAGMAS = (
    # FULL: a commit has reached the disk when it returns, also when the power fails.
    "PRAGMA synchronous=FULL",
    "PRAGMA foreign_keys=ON",
    "PRAGMA cache_size=-8192",
    "PRAGMA journal_size_limit=67108864",
)


def sqlite_engine(where: DatabaseUrl, *, begin: str, read_only: bool = False, size: int = 1) -> Engine:
    """An engine whose transactions begin with ``begin``: SQLAlchemy decides when, not the driver."""
    check_version()
    pool: dict[str, Any] = {"poolclass": QueuePool, "pool_size": size, "max_overflow": 0}
    if where.path is None:
        pool = {"poolclass": StaticPool}
    engine = create_engine(
        where.url,
        hide_parameters=True,
        connect_args={"timeout": BUSY_TIMEOUT_SECONDS, "check_same_thread": False, "isolation_level": None},
        **pool,
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _: object) -> None:
        _prepare(connection, read_only=read_only)

    @event.listens_for(engine, "begin")
    def start(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    return engine


def _prepare(connection: Any, *, read_only: bool) -> None:
    for pragma in ("PRAGMA query_only=ON",) if read_only else _WRITER_PRAGMAS:
        connection.execute(pragma)


def check_version() -> None:
    """Raises `StoreUnavailable` where Python was built with a SQLite that is too old."""
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        oldest = ".".join(map(str, OLDEST_SQLITE))
        raise StoreUnavailable(
            f"this Python comes with SQLite {sqlite3.sqlite_version}, and moorage needs {oldest} or newer: "
            "use another Python or PostgreSQL"
        )


def make_file(path: Path) -> None:
    """Create the database file, for its owner's eyes only, in WAL mode."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not path.exists():
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    with_wal = sqlite3.connect(path, timeout=BUSY_TIMEOUT_SECONDS)
    try:
        with_wal.execute("PRAGMA journal_mode=WAL")
    finally:
        with_wal.close()


@dataclass(slots=True)
class _Job:
    unit: Callable[[Connection], Any]
    future: "Future[Any]" = field(default_factory=Future)


class _Lost(Exception):
    """The transaction is gone under the units that had yet to run."""


class _Writer:
    """The writer thread."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._closed = False
        # A daemon: an interpreter that exits without closing the store must not hang on it.
        self._thread = threading.Thread(target=self._run, name="moorage-sqlite-writer", daemon=True)
        self._thread.start()

    def submit(self, unit: Callable[[Connection], Any]) -> "Future[Any]":
        job = _Job(unit)
        with self._lock:
            if self._closed:
                raise StoreUnavailable("the store is closed")
            self._jobs.put(job)
        return job.future

    def close(self) -> None:
        """Finish what was submitted, then end the thread."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._jobs.put(None)
        self._thread.join()
        self._engine.dispose()

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            batch, last = self._drained(job)
            waiting = [one for one in batch if one.future.set_running_or_notify_cancel()]
            if waiting:
                self._commit(waiting)
            if last:
                return

    def _drained(self, first: _Job) -> tuple[list[_Job], bool]:
        batch = [first]
        while len(batch) < _MOST_IN_ONE_COMMIT:
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                break
            if job is None:
                return batch, True
            batch.append(job)
        return batch, False

    def _commit(self, jobs: list[_Job]) -> None:
        ends: list[tuple[_Job, Any, Exception | None]] = []
        try:
            with self._engine.begin() as connection:
                alone = len(jobs) == 1
                ends = [(job, *self._attempt(connection, job, alone=alone)) for job in jobs]
        except _Lost as lost:
            cause = lost.__cause__ or lost
            for job in jobs:
                job.future.set_exception(cause)
        except BaseException as error:
            for job in jobs:
                job.future.set_exception(error)
        else:
            for job, value, failure in ends:
                if failure is not None:
                    job.future.set_exception(failure)
                else:
                    job.future.set_result(value)

    @staticmethod
    def _attempt(connection: Connection, job: _Job, *, alone: bool) -> tuple[Any, Exception | None]:
        if alone:
            return job.unit(connection), None
        try:
            with connection.begin_nested():
                return job.unit(connection), None
        except Exception as error:
            # A full disk, say, makes SQLite roll back everything by itself.
            if not connection.connection.dbapi_connection.in_transaction:  # type: ignore[union-attr]
                raise _Lost from error
            return None, error


class SqliteDatabase:
    """`Database` on a SQLite file, or in memory where the URL names no file."""

    def __init__(self, where: DatabaseUrl, clock: Clock) -> None:
        self.dialect = dialects.sqlite()
        self.clock = clock
        self.signals = LocalSignals()
        self._name = str(where)
        self._writer = _Writer(sqlite_engine(where, begin="BEGIN IMMEDIATE"))
        self._reads: Engine | None = None
        if where.path is not None:
            self._reads = sqlite_engine(where, begin="BEGIN", read_only=True, size=_READERS)
            self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="moorage-sqlite-reader")

    async def read(self, unit: Unit[T]) -> T:
        if self._reads is None:
            return await self.write(unit)
        return await self._result(self._readers.submit(self._read, self._reads, unit))

    async def write(self, unit: Unit[T], *, single: bool = False) -> T:
        return await self._result(self._writer.submit(unit))

    async def aclose(self) -> None:
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._writer.close()
        if self._reads is not None:
            self._readers.shutdown()
            self._reads.dispose()

    @staticmethod
    def _read(engine: Engine, unit: Unit[T]) -> T:
        with engine.connect() as connection:
            return unit(connection)

    async def _result(self, future: "Future[T]") -> T:
        try:
            return await asyncio.wrap_future(future)
        except Exception as error:
            outage = unavailable(error, self._name)
            if outage is None:
                raise
            raise outage from error
