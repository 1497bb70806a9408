"""A database as the repositories see it: units of work, run as transactions.

A unit is a plain function on a SQLAlchemy connection. It runs from its first statement to its commit
without anything of the caller in between, so no transaction can stay open across a remote call (TASK-6),
and the same function serves both databases, whichever way they are driven.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection

from moorage.contract import Clock
from moorage_drivers.sql.dialects import Dialect
from moorage_drivers.sql.signals import LocalSignals
from moorage_drivers.sql.times import micros

T = TypeVar("T")
Unit = Callable[[Connection], T]


class Database(Protocol):
    """Runs units. Raises `StoreUnavailable` where the database cannot be reached; other database errors
    pass, so that a repository can read a violated key."""

    dialect: Dialect
    clock: Clock
    signals: LocalSignals

    async def read(self, unit: Unit[T]) -> T:
        """Run a unit that changes nothing."""
        ...

    async def write(self, unit: Unit[T], *, single: bool = False) -> T:
        """Run a unit as one transaction that starts as a writer. ``single``: it is one statement, which
        PostgreSQL commits by itself."""
        ...

    async def aclose(self) -> None: ...


def bound_now(database: Database) -> Mapping[str, Any]:
    """What statements with `Dialect.now` in them need bound."""
    return {"now": micros(database.clock.now())} if ":now" in database.dialect.now else {}
