"""PostgreSQL through psycopg's async connections.

Units run in SQLAlchemy's greenlet on the event loop that the store was opened on; calls from another loop
are carried over (TOOL-6). Each unit has a task of its own: a caller that is cancelled leaves at once, and
the unit goes on to its end, as it does in the writer thread of SQLite. Cancelled inside SQLAlchemy, it
would leave its connection checked out for ever.
"""

import asyncio
import select
from typing import Any, NoReturn, TypeVar

from sqlalchemy import event, text
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from moorage.clock import SystemClock
from moorage.contract import Clock
from moorage_drivers.sql import dialects
from moorage_drivers.sql.database import Unit
from moorage_drivers.sql.failures import is_deadlock, is_disconnect, unavailable
from moorage_drivers.sql.signals import LocalSignals, PostgresSignals
from moorage_drivers.sql.urls import DatabaseUrl

T = TypeVar("T")

CONNECT_TIMEOUT_SECONDS = 10
_CONNECT = {"connect_timeout": CONNECT_TIMEOUT_SECONDS, "application_name": "moorage"}
_CONNECTIONS = 8
_POOL_WAIT_SECONDS = 15.0
_MOST_ATTEMPTS = 4
_CLOSING_SECONDS = 10.0


class PostgresDatabase:
    """`Database` on PostgreSQL, or on what speaks its protocol."""

    def __init__(self, where: DatabaseUrl, clock: Clock) -> None:
        """Must be called on the event loop that shall drive the connections."""
        self.dialect = dialects.postgresql(own_clock=not isinstance(clock, SystemClock))
        self.clock = clock
        self._name = str(where)
        self._loop = asyncio.get_running_loop()
        self._under_way: set[asyncio.Task[Any]] = set()
        self._engine = create_async_engine(
            where.url,
            hide_parameters=True,
            pool_size=_CONNECTIONS,
            max_overflow=_CONNECTIONS,
            pool_timeout=_POOL_WAIT_SECONDS,
            connect_args=dict(_CONNECT),
        )
        event.listen(self._engine.sync_engine, "checkout", _refuse_closed)
        self._single = self._engine.execution_options(isolation_level="AUTOCOMMIT")
        _, connect = self._engine.dialect.create_connect_args(where.url)
        self.signals: LocalSignals = PostgresSignals(self._notify, {**connect, **_CONNECT})

    async def read(self, unit: Unit[T]) -> T:
        return await self._at_home(self._single, unit, repeatable=True)

    async def write(self, unit: Unit[T], *, single: bool = False) -> T:
        if single:
            # The statement commits by itself, and may have done so before its connection died.
            return await self._at_home(self._single, unit, repeatable=False)
        return await self._at_home(self._engine, unit, repeatable=True)

    async def _notify(self, channel: str, message: str) -> None:
        values = {"channel": channel, "message": message}
        await self.write(
            lambda c: c.execute(text("SELECT pg_notify(:channel, :message)"), values), single=True
        )

    async def aclose(self) -> None:
        """Wait for what is under way, at most `_CLOSING_SECONDS`, and close all connections."""
        await self.signals.aclose()
        if self._under_way:
            _, late = await asyncio.wait(self._under_way, timeout=_CLOSING_SECONDS)
            for task in late:
                task.cancel()
        await self._engine.dispose()

    async def _at_home(self, engine: AsyncEngine, unit: Unit[T], *, repeatable: bool) -> T:
        if asyncio.get_running_loop() is self._loop:
            return await self._owned(engine, unit, repeatable)
        carried = asyncio.run_coroutine_threadsafe(self._owned(engine, unit, repeatable), self._loop)
        return await asyncio.wrap_future(carried)

    async def _owned(self, engine: AsyncEngine, unit: Unit[T], repeatable: bool) -> T:
        task = self._loop.create_task(self._attempts(engine, unit, repeatable))
        self._under_way.add(task)
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        self._under_way.discard(task)
        if not task.cancelled():
            task.exception()  # its caller may have left; then nobody else would look at it

    async def _attempts(self, engine: AsyncEngine, unit: Unit[T], repeatable: bool) -> T:
        """Repeat a unit that certainly did not commit: its connection had died in the pool, or it was the
        victim of a deadlock."""
        for attempt in range(1, _MOST_ATTEMPTS + 1):
            try:
                return await self._attempt(engine, unit)
            except _Undone as undone:
                error = undone.error
                stale = is_disconnect(error) and repeatable and attempt == 1
                if attempt < _MOST_ATTEMPTS and (stale or is_deadlock(error)):
                    continue
                self._raise(error)
            except Exception as error:
                self._raise(error)
        raise AssertionError("unreachable")

    async def _attempt(self, engine: AsyncEngine, unit: Unit[T]) -> T:
        async with engine.connect() as connection:
            try:
                value = await connection.run_sync(unit)
            except Exception as error:
                raise _Undone(error) from error
            await connection.commit()
            return value

    def _raise(self, error: Exception) -> NoReturn:
        outage = unavailable(error, self._name)
        if outage is None:
            raise error
        raise outage from error


def _refuse_closed(connection: Any, record: Any, proxy: Any) -> None:
    """Have the pool replace a connection that the server closed while it lay idle (a restart, say).

    An idle connection has nothing to read but the server's goodbye; asking for that costs no round trip.
    """
    if hasattr(select, "poll"):
        waiting = select.poll()
        waiting.register(connection.driver_connection.fileno(), select.POLLIN)
        if waiting.poll(0):
            raise DisconnectionError("the server has closed the connection")


class _Undone(Exception):
    """The unit failed before its commit."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error
