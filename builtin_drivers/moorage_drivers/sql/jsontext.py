"""JSON and plain text in a form that every database stores (BOUND-4).

PostgreSQL's text refuses NUL, and UTF-8 refuses lone surrogates. JSON carries both as escapes, in ASCII;
plain text gets a replacement character.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Dialect, String, Text
from sqlalchemy.types import TypeDecorator

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_NOT_ASCII = re.compile("[^\x01-\x7f]")


def storable(text: str) -> str:
    return text if text.isascii() and "\x00" not in text else _UNSTORABLE.sub("\ufffd", text)


def maybe_storable(text: str | None) -> str | None:
    return None if text is None else storable(text)


def to_json(value: Any) -> str:
    """Canonical: equal values make equal texts. Raises `ValueError` or `TypeError` for what is no JSON."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, default=_plain)


def from_json(text: str | None) -> Any:
    return None if text is None else json.loads(text)


def ascii_json(text: str | None) -> str | None:
    """The same JSON in ASCII: outside of ASCII, JSON has characters only inside strings."""
    if text is None or (text.isascii() and "\x00" not in text):
        return text
    return _NOT_ASCII.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    return json.dumps(match.group())[1:-1]


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    raise TypeError(f"a {type(value).__name__} is no JSON value")


class JsonText(TypeDecorator[Any]):
    """A column of JSON values, kept as text."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        return None if value is None else to_json(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        return from_json(value)


class PlainText(TypeDecorator[str]):
    """A column of text from elsewhere, cleaned on its way in."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return maybe_storable(value)


class PlainName(TypeDecorator[str]):
    """The same for a short text of limited length."""

    impl = String
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return maybe_storable(value)
