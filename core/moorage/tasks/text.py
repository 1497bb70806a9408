"""Text from elsewhere, made fit to be stored (BOUND-1, BOUND-4)."""

import re

ERROR_LIMIT_CHARACTERS = 4_000
REASON_LIMIT_CHARACTERS = 500

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def storable(text: str) -> str:
    """The text with NUL and lone surrogates replaced: PostgreSQL and UTF-8 refuse both."""
    return _UNSTORABLE.sub("\ufffd", text)


def is_storable(text: str) -> bool:
    return _UNSTORABLE.search(text) is None


def cut(text: str, limit: int) -> str:
    """Storable text of at most ``limit`` characters; what was cut ends in an ellipsis."""
    return storable(text if len(text) <= limit else text[: limit - 1] + "…")


def bounded_error(value: object) -> str:
    """An error as it may be persisted, whatever a driver put there (BOUND-1)."""
    return cut(value if isinstance(value, str) else _text_of(value), ERROR_LIMIT_CHARACTERS)


def describe(exc: BaseException, limit: int = REASON_LIMIT_CHARACTERS) -> str:
    """An exception in one bounded line, with its type."""
    message = _text_of(exc).strip()
    name = type(exc).__name__
    return cut(f"{name}: {message}" if message else name, limit)


def _text_of(value: object) -> str:
    # A plugin's own __str__ runs here, and may do anything.
    try:
        return str(value)
    except Exception:
        return f"<{type(value).__name__} without a text>"
