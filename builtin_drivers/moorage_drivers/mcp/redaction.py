"""Known secrets are taken out of what we quote of a server (CRED-9)."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from moorage.contract import ServerConfig

MIN_SECRET_CHARACTERS = 8
"""Shorter values are words that occur anywhere."""
_MASK = "***"


def secrets_of(server: ServerConfig) -> Iterator[str]:
    """What a server's configuration holds that may be a secret."""
    yield from server.env.values()
    for value in server.headers.values():
        yield value
        yield value.rpartition(" ")[2]
    if server.url is not None:
        parts = urlsplit(server.url)
        yield from (part for part in (parts.username, parts.password) if part)
        yield from (value for _, value in parse_qsl(parts.query))


def leaves(value: Any) -> Iterator[str]:
    """The texts in nested request secrets."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from leaves(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from leaves(item)


class Redactor:
    """Replaces known secrets in a text."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = {secret for secret in secrets if len(secret) >= MIN_SECRET_CHARACTERS}
        # The longest first, so that one that contains another leaves nothing behind.
        self._secrets = sorted(known, key=len, reverse=True)

    def clean(self, text: str, *, limit: int = 2_000) -> str:
        """The text without known secrets; of a longer one its last ``limit`` characters."""
        for secret in self._secrets:
            text = text.replace(secret, _MASK)
        return text if len(text) <= limit else f"…{text[-limit:]}"
