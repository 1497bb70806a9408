"""Keeping a run's secrets out of what is stored, logged and returned (RUN-1, CRED-9)."""

from collections.abc import Iterator, Mapping
from typing import Any

from moorage.contract.empty import EMPTY
from moorage.contract.redaction import Redactor

MIN_LENGTH = 8
"""Shorter values are not searched for: too much else would match."""
MAX_ERROR_CHARACTERS = 4_000


class Secrets(dict[str, Any]):
    """A run's secrets, copied in depth. Its ``repr`` shows names only, since
    libraries quote what they are handed in warnings and errors."""

    def __init__(self, values: Mapping[str, Any] = EMPTY) -> None:
        super().__init__({name: _veiled(value) for name, value in values.items()})

    def __repr__(self) -> str:
        return f"Secrets({', '.join(map(str, self))})"


class _Veiled(list[Any]):
    def __repr__(self) -> str:
        return f"<{len(self)} secrets>"


def _veiled(value: Any) -> Any:
    if isinstance(value, Mapping):
        return Secrets(value)
    return _Veiled(map(_veiled, value)) if isinstance(value, list | tuple) else value


def texts(secrets: Any) -> Iterator[str]:
    """Every text in the nested secrets."""
    if isinstance(secrets, str):
        yield secrets
    elif isinstance(secrets, Mapping):
        for item in secrets.values():
            yield from texts(item)
    elif isinstance(secrets, list | tuple):
        for item in secrets:
            yield from texts(item)
    elif isinstance(secrets, int | float) and not isinstance(secrets, bool):
        yield str(secrets)


class Scrubber:
    """Takes one run's secrets, and all that the gateway knows, out of texts."""

    def __init__(self, secrets: Mapping[str, Any], redactor: Redactor | None = None) -> None:
        known = {text for text in texts(secrets) if len(text) >= MIN_LENGTH}
        # The longest first, so that one secret within another leaves no rest.
        self._known = sorted(known, key=len, reverse=True)
        self._redactor = redactor
        if redactor is not None:
            for text in self._known:
                redactor.register(text, lasting=False)

    def error(self, error: BaseException) -> str:
        """What may be said of an exception: its type and redacted text, bounded (BOUND-1)."""
        text = self.text(str(error)).replace("\x00", "\ufffd").encode("utf-8", "replace").decode()
        name = type(error).__name__
        return (f"{name}: {text}" if text else name)[:MAX_ERROR_CHARACTERS]

    def text(self, text: str) -> str:
        for secret in self._known:
            text = text.replace(secret, "***")
        return self._redactor.redact(text) if self._redactor is not None else text
