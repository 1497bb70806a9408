"""Turns what a file or a variable says into the value of a settings field, or says why not (CONF-6)."""

import math
from collections.abc import Mapping
from dataclasses import Field
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from moorage.contract.errors import ConfigError

_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})


def from_variable(kind: Any, text: str, *, where: str) -> Any:
    """The value that a variable's text means for a field of this type; not yet checked for its range.

    Raises `ConfigError` that names the variable. The text is never quoted: it may be a secret that went
    into the wrong variable.
    """
    if bool in _alternatives(kind) and text.lower() in _TRUE | _FALSE:
        return text.lower() in _TRUE
    number = _number_kind(kind)
    if number is not None:
        try:
            return number(text)
        except ValueError:
            raise ConfigError(f"must be {_described(kind)}", where=where) from None
    if kind == tuple[str, ...]:
        return [part.strip() for part in text.split(",") if part.strip()]
    return text


def checked(item: Field[Any], value: Any, *, where: str, base: Path, user_home: str | None) -> Any:
    """The value as its field holds it: of the right type, finite, within the field's range.

    ``base`` is the folder that relative paths count from. Raises `ConfigError`.
    """
    kind = item.type
    low, high = item.metadata.get("range", (None, None))
    number = _number_kind(kind)
    if number is not None:
        return _number(number, value, low, high, where)
    if kind == tuple[str, ...]:
        if not isinstance(value, list | tuple) or not all(isinstance(v, str) and v.strip() for v in value):
            raise ConfigError("must be a list of texts", where=where)
        return tuple(value)
    alternatives = _alternatives(kind)
    if Path in alternatives and isinstance(value, str) and value.strip() and "\0" not in value:
        return resolved(value, base=base, user_home=user_home)
    for alternative in alternatives:
        if get_origin(alternative) is Literal:
            if isinstance(value, str) and value in get_args(alternative):
                return value
        elif alternative is bool:
            if isinstance(value, bool):
                return value
        elif alternative is str and isinstance(value, str) and value.strip():
            return value
    raise ConfigError(f"must be {_described(kind)}", where=where)


def resolved(text: str, *, base: Path, user_home: str | None) -> Path:
    """An absolute path; ``~`` means the user's home where that is known."""
    if user_home and (text == "~" or text.startswith("~/")):
        text = user_home + text[1:]
    return (base / text).absolute()


def range_text(metadata: Mapping[str, Any]) -> str:
    """``0.05 to 86,400``; empty where a field has no range."""
    if "range" not in metadata:
        return ""
    low, high = metadata["range"]
    return f"{low:,} to {high:,}"


def _number(kind: Any, value: Any, low: float | None, high: float | None, where: str) -> int | float:
    accepted = (int,) if kind is int else (int, float)
    allowed = f" within {low:,} to {high:,}" if low is not None and high is not None else ""
    if isinstance(value, bool) or not isinstance(value, accepted):
        raise ConfigError(f"must be {_described(kind)}{allowed}", where=where)
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"must be a finite number{allowed}", where=where)
    if low is not None and high is not None and not low <= value <= high:
        raise ConfigError(f"must be {_described(kind)}{allowed}, and is {value:,}", where=where)
    return kind(value)  # type: ignore[no-any-return]


def _number_kind(kind: Any) -> type[int] | type[float] | None:
    return next((k for k in (int, float) if k in _alternatives(kind)), None)


def _alternatives(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _described(kind: Any) -> str:
    words: list[str] = []
    for alternative in _alternatives(kind):
        if get_origin(alternative) is Literal:
            words.extend(repr(value) for value in get_args(alternative))
        elif alternative in _WORDS:
            words.append(_WORDS[alternative])
    return " or ".join(words)


_WORDS: dict[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text that is not blank",
    Path: "a path",
}
