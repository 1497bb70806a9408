"""All that databases hold, as text, to search it or to compare it."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

import psycopg


def dump(url: str, home: Path | None = None, *, without: Sequence[str] = ()) -> str:
    """Every row of every table, with those of a checkpoint file under ``home``."""
    if url.startswith("postgresql"):
        return _postgres(url, without)
    files = [Path(url.removeprefix("sqlite:///"))]
    files += [home / "checkpoints.sqlite"] if home is not None else []
    return "\n".join(_sqlite(file, without) for file in files if file.exists())


def _sqlite(file: Path, without: Sequence[str]) -> str:
    connection = sqlite3.connect(file)
    try:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return "\n".join(
            f"{name}: {row!r}"
            for name in sorted(names)
            if name not in without
            for row in sorted(connection.execute(f'SELECT * FROM "{name}"'), key=repr)
        )
    finally:
        connection.close()


def _postgres(url: str, without: Sequence[str]) -> str:
    with psycopg.connect(url) as connection:
        names = [
            str(row[0])
            for row in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        ]
        return "\n".join(
            f"{name}: {row!r}"
            for name in sorted(names)
            if name not in without
            for row in sorted(connection.execute(f'SELECT * FROM "{name}"').fetchall(), key=repr)
        )
