"""Contributes the SQL store, the memory store, and the command groups ``db`` and ``tasks``.

SQLAlchemy is imported when a store is opened or a command runs, not before (PLUG-8).
"""

from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from typing import Any

from moorage.contract import CliGroup, Clock, Store, StoreSpec, hookimpl

MOORAGE_API = ">=0.1"


def _open(url: str, clock: Clock, migrate: bool) -> AbstractAsyncContextManager[Store]:
    from moorage_drivers.sql.store import open_store

    return open_store(url, clock, migrate)


def _open_memory(url: str, clock: Clock, migrate: bool) -> AbstractAsyncContextManager[Store]:
    from moorage_drivers.sql.store import open_memory

    return open_memory(url, clock, migrate)


def _upgrade(url: str) -> str:
    from moorage_drivers.sql.migrate import upgrade

    return upgrade(url)


def _nothing_to_upgrade(url: str) -> str:
    return "memory"


def _db() -> Any:
    from moorage_drivers.sql.cli.db import app

    return app


def _tasks() -> Any:
    from moorage_drivers.sql.cli.tasks import app

    return app


@hookimpl
def moorage_stores() -> Iterable[StoreSpec]:
    return (
        StoreSpec(
            name="sql", schemes=frozenset({"sqlite", "postgresql", "postgres"}), open=_open, upgrade=_upgrade
        ),
        StoreSpec(
            name="memory", schemes=frozenset({"memory"}), open=_open_memory, upgrade=_nothing_to_upgrade
        ),
    )


@hookimpl
def moorage_cli_groups() -> Iterable[CliGroup]:
    return (
        CliGroup(name="db", help="Bring the database up to date.", load=_db),
        CliGroup(name="tasks", help="Look at durable tasks, and cancel them.", load=_tasks),
    )
