"""Tokens, and what token endpoints say about them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from moorage.contract import CredentialDenied, check_header
from moorage_plugins.oauth.model import OAuth

DEFAULT_LIFETIME_SECONDS = 300.0
"""For a reply that says nothing, or nonsense, about expiry."""
LONGEST_LIFETIME_SECONDS = 86_400.0
SHARED_FOR_SECONDS = 1.0
"""How long a token serves that is said to be expired already, so that there is no fetch for every call."""


class TokenRefused(Exception):
    """No token could be had. The text is safe to show: it holds neither a secret nor the reply's body.

    ``code``: the error code of RFC 6749, where the endpoint gave a known one.
    """

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Token:
    """An access token. ``lifetime_seconds`` counts from when it was asked for."""

    value: str = field(repr=False)
    type: str
    lifetime_seconds: float
    refresh_token: str | None = field(default=None, repr=False)
    """The newer refresh token that came with it."""

    @property
    def header(self) -> str:
        return f"{self.type} {self.value}"


def parse_reply(block: OAuth, reply: object) -> Token:
    """The token in a token endpoint's reply; raises `TokenRefused` where there is none that can be sent."""
    if not isinstance(reply, Mapping):
        raise TokenRefused("the token endpoint's reply is no JSON object")
    value = reply.get(block.token_field)
    if not isinstance(value, str) or not value:
        raise TokenRefused(f"the token endpoint's reply has no text in {block.token_field!r}")
    kind = reply.get(block.token_type_field)
    kind = kind if isinstance(kind, str) and kind.strip() else block.default_token_type
    # Some endpoints spell it in lower case, and some servers compare it exactly.
    kind = "Bearer" if kind.lower() == "bearer" else kind
    token = Token(
        value,
        kind,
        lifetime_seconds(reply.get(block.expires_in_field)),
        refresh_token=_newer_refresh_token(reply),
    )
    try:
        check_header("Authorization", token.header, source="oauth")
    except CredentialDenied:
        raise TokenRefused("HTTP cannot carry the token that the token endpoint gave") from None
    return token


def lifetime_seconds(expires_in: Any) -> float:
    """Seconds from any form of ``expires_in``: never below `SHARED_FOR_SECONDS`, never without bound."""
    if isinstance(expires_in, str):
        try:
            expires_in = float(expires_in)
        except ValueError:
            return DEFAULT_LIFETIME_SECONDS
    if isinstance(expires_in, bool) or not isinstance(expires_in, int | float):
        return DEFAULT_LIFETIME_SECONDS
    try:
        seconds = float(expires_in)
    except OverflowError:
        return LONGEST_LIFETIME_SECONDS
    if not math.isfinite(seconds):
        return DEFAULT_LIFETIME_SECONDS
    return min(max(seconds, SHARED_FOR_SECONDS), LONGEST_LIFETIME_SECONDS)


def _newer_refresh_token(reply: Mapping[str, Any]) -> str | None:
    value = reply.get("refresh_token")
    return value if isinstance(value, str) and value else None
