"""Bringing a database up to date (OPS-2). Alembic is imported only where there is something to do."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, inspect, text
from sqlalchemy.exc import SQLAlchemyError

from moorage.contract import StoreUnavailable
from moorage_drivers.sql.failures import unavailable
from moorage_drivers.sql.postgres import CONNECT_TIMEOUT_SECONDS
from moorage_drivers.sql.sqlite import make_file, sqlite_engine
from moorage_drivers.sql.urls import DatabaseUrl, parse_url

HEAD = "0002"
"""The newest revision under ``migrations/versions``; a test keeps it so."""

MIGRATIONS = Path(__file__).parent / "migrations"
_VERSION_TABLE = "alembic_version"
_LOCK = 0x6D6F6F72  # any constant: replicas that start at once take turns by it


def upgrade(url: str) -> str:
    """Migrate the database; returns the revision it is at. Safe to call from several processes at once.

    Raises `ConfigError` for a URL that cannot be read and `StoreUnavailable` where the database cannot be
    reached, or is newer than this release.
    """
    where = parse_url(url)
    with _connected(where) as connection:
        if revision_of(connection) != HEAD:
            _upgrade(connection, where)
        return HEAD


def current_revision(where: DatabaseUrl) -> str | None:
    """The revision the database is at; None for an empty one, or where there is no SQLite file yet."""
    if where.path is not None and not where.path.exists():
        return None
    with _connected(where, create=False) as connection:
        return revision_of(connection)


def revision_of(connection: Connection) -> str | None:
    if not inspect(connection).has_table(_VERSION_TABLE):
        return None
    found = connection.scalar(text(f"SELECT version_num FROM {_VERSION_TABLE}"))  # noqa: S608
    return None if found is None else str(found)


def check_revision(revision: str | None, where: DatabaseUrl) -> None:
    """Raises `StoreUnavailable` with the remedy where the database is not at `HEAD`."""
    if revision == HEAD:
        return
    if revision is not None and revision > HEAD:
        raise StoreUnavailable(
            f"{where}: the database is at revision {revision}, this release knows {HEAD}: upgrade moorage"
        )
    state = "has no tables of moorage" if revision is None else f"is at revision {revision}, not {HEAD}"
    raise StoreUnavailable(f"{where}: the database {state}: run `moorage db upgrade`")


def create_all(connection: Connection) -> None:
    """Make the tables of a database that nobody migrates (one in memory)."""
    from moorage_drivers.sql.models import metadata

    metadata.create_all(connection)


def _upgrade(connection: Connection, where: DatabaseUrl) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.script.revision import ResolutionError
    from alembic.util.exc import CommandError

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, "head")
    except (CommandError, ResolutionError):
        check_revision(revision_of(connection), where)
        raise


@contextmanager
def _connected(where: DatabaseUrl, *, create: bool = True) -> Iterator[Connection]:
    """One connection, in one transaction that keeps other migrators out."""
    try:
        engine = _engine(where, create=create)
        try:
            with engine.begin() as connection:
                if not where.sqlite:
                    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
                yield connection
        finally:
            engine.dispose()
    except (SQLAlchemyError, OSError, sqlite3.Error) as error:
        outage = unavailable(error, str(where))
        if outage is None:
            raise
        raise outage from error


def _engine(where: DatabaseUrl, *, create: bool) -> Engine:
    if not where.sqlite:
        return create_engine(
            where.url, hide_parameters=True, connect_args={"connect_timeout": CONNECT_TIMEOUT_SECONDS}
        )
    if create and where.path is not None:
        make_file(where.path)
    return sqlite_engine(where, begin="BEGIN IMMEDIATE")
