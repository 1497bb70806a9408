"""Known secrets are taken out of what we quote of a server (CRED-9)."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from moorage.contract import GatewayContext, Redactor, ServerConfig, ToolCall

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


class Quoter:
    """Takes known secrets out of what we quote of a server.

    ``further`` knows what the rest of the gateway knows.
    """

    def __init__(self, secrets: Iterable[str] = (), further: Callable[[str], str] = str) -> None:
        known = {secret for secret in secrets if len(secret) >= MIN_SECRET_CHARACTERS}
        # The longest first, so that one that contains another leaves nothing behind.
        self._secrets = sorted(known, key=len, reverse=True)
        self._further = further

    def quote(self, text: str, *, limit: int = 4_000) -> str:
        """The text without known secrets; of a longer one its last ``limit`` characters.

        What is cut is cut afterwards, so that no half of a secret is left."""
        for secret in self._secrets:
            text = text.replace(secret, _MASK)
        text = self._further(text)
        return text if len(text) <= limit else f"…{text[-limit:]}"


def quoter(gateway: GatewayContext, server: ServerConfig, call: ToolCall | None = None) -> Quoter:
    """For what this call's server says."""
    values = call.headers.values() if call else ()
    parts = (part for value in values for part in (value, value.rpartition(" ")[2]))
    further = gateway.service(Redactor).redact if gateway.has(Redactor) else str
    return Quoter([*secrets_of(server), *parts, *leaves(call.secrets if call else {})], further)
