"""Moments as integers: microseconds since 1970 in UTC.

Both databases compare integers the same way, whatever offset a moment came with and whatever time zone a
session has; SQLite has no type for a moment at all.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import BigInteger, Dialect
from sqlalchemy.types import TypeDecorator

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def micros(moment: datetime) -> int:
    """The moment's microseconds since 1970; raises `ValueError` for a naive one (TASK-6)."""
    if moment.tzinfo is None:
        raise ValueError(f"a moment without an offset cannot be stored: {moment.isoformat()}")
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def maybe_micros(moment: datetime | None) -> int | None:
    return None if moment is None else micros(moment)


def moment(value: int) -> datetime:
    """Aware, UTC."""
    return _EPOCH + timedelta(microseconds=value)


def maybe_moment(value: int | None) -> datetime | None:
    return None if value is None else _EPOCH + timedelta(microseconds=value)


def span(seconds: float) -> int:
    """A duration in microseconds."""
    return round(seconds * 1_000_000)


class Instant(TypeDecorator[datetime]):
    """A column of moments: aware UTC datetimes in Python, microseconds in the database."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:
        return maybe_micros(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        return maybe_moment(value)
