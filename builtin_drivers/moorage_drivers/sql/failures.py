"""What a database error means, in the contract's terms and without a value in its message."""

import re
import sqlite3

from sqlalchemy.exc import DBAPIError, IntegrityError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from moorage.contract import StoreUnavailable

_DEADLOCK_STATES = frozenset({"40001", "40P01"})
_UNIQUE_STATE = "23505"
_SQLITE_UNIQUE = re.compile(r"UNIQUE constraint failed: (?P<columns>[\w., ]+)")
# Only what a reachable database would not say; an unknown table, say, is a bug of ours.
_OUTAGE_STATES = re.compile(r"08|53|57|58|28|3D")


def is_disconnect(error: BaseException) -> bool:
    return isinstance(error, DBAPIError) and error.connection_invalidated


def is_deadlock(error: BaseException) -> bool:
    return isinstance(error, DBAPIError) and getattr(error.orig, "sqlstate", None) in _DEADLOCK_STATES


def violated_key(error: IntegrityError) -> str | None:
    """The unique key that was violated: its name on PostgreSQL, ``table.column, …`` on SQLite."""
    orig = error.orig
    if getattr(orig, "sqlstate", None) == _UNIQUE_STATE:
        name = getattr(getattr(orig, "diag", None), "constraint_name", None)
        return str(name) if name else None
    found = _SQLITE_UNIQUE.search(str(orig))
    return found["columns"] if found else None


def unavailable(error: BaseException, where: str) -> StoreUnavailable | None:
    """The `StoreUnavailable` that the error amounts to; None where it is something else."""
    if isinstance(error, PoolTimeout):
        return StoreUnavailable(f"{where}: all connections are in use")
    if isinstance(error, OSError):
        return StoreUnavailable(f"{where}: {type(error).__name__}: {error.strerror or 'no connection'}")
    if isinstance(error, sqlite3.OperationalError):
        return StoreUnavailable(f"{where}: {_first_line(error)}")
    if not isinstance(error, (OperationalError, InterfaceError)) and not is_disconnect(error):
        return None
    orig = error.orig if isinstance(error, DBAPIError) else None
    state = getattr(orig, "sqlstate", None)
    if state and not _OUTAGE_STATES.match(state):
        return None
    return StoreUnavailable(f"{where}: {_first_line(orig)}")


def _first_line(orig: BaseException | None) -> str:
    lines = str(orig).strip().splitlines() if orig else []
    return lines[0][:300] if lines else "no connection"
