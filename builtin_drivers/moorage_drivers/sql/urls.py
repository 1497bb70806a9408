"""Database URLs: which drivers they mean, and how they may be shown."""

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from moorage.contract import ConfigError


@dataclass(frozen=True, slots=True)
class DatabaseUrl:
    """A checked URL. ``path`` is None where the database is no SQLite file."""

    url: URL
    sqlite: bool
    path: Path | None = None

    def __str__(self) -> str:
        """Without the password and without the query, which may hold one too."""
        return self.url.set(query={}).render_as_string(hide_password=True)


def parse_url(text: str) -> DatabaseUrl:
    """Any spelling that the store takes; raises `ConfigError`, which never quotes the URL (CRED-9)."""
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise ConfigError(
            "the database URL cannot be read; it looks like sqlite:///path or postgresql://user@host/name",
            where="MOORAGE_DATABASE_URL",
        ) from None
    backend = url.drivername.split("+")[0]
    if backend == "sqlite":
        memory = url.database in (None, "", ":memory:")
        return DatabaseUrl(
            url.set(drivername="sqlite+pysqlite"),
            sqlite=True,
            path=None if memory else Path(str(url.database)),
        )
    if backend in ("postgresql", "postgres"):
        return DatabaseUrl(url.set(drivername="postgresql+psycopg"), sqlite=False)
    raise ConfigError(f"no database {backend!r} is known here", where="MOORAGE_DATABASE_URL")
