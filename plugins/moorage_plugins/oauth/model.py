"""The section ``oauth``."""

import hashlib
import json
import math
from functools import cached_property
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

RESERVED_PARAMS = frozenset(
    {"grant_type", "client_id", "client_secret", "refresh_token", "scope", "audience"}
)


def _as_text(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value


def _joined(value: object) -> object:
    return " ".join(value) if isinstance(value, list) and all(isinstance(v, str) for v in value) else value


class OAuth(BaseModel):
    """How the gateway gets its token for a server (CRED-3). Its ``repr`` and its errors hide the secrets."""

    model_config = ConfigDict(extra="allow", frozen=True, hide_input_in_errors=True)

    token_url: str = Field(repr=False)
    grant_type: Literal["client_credentials", "refresh_token"] = "client_credentials"
    client_id: str | None = None
    client_secret: str | None = Field(default=None, repr=False)
    refresh_token: str | None = Field(default=None, repr=False)
    """The first of its line; newer ones that the token endpoint gives out are kept by the gateway."""
    scope: Annotated[str | None, BeforeValidator(_joined)] = None
    audience: str | None = None
    token_field: str = "access_token"  # noqa: S105 - a field name
    token_type_field: str = "token_type"  # noqa: S105 - a field name
    expires_in_field: str = "expires_in"
    default_token_type: str = "Bearer"  # noqa: S105 - a scheme
    refresh_skew_seconds: float = 60.0
    """A token is renewed so long before it expires, but not before half of its life is over."""
    extra_token_params: dict[str, Annotated[str | None, BeforeValidator(_as_text)]] = Field(
        default_factory=dict, repr=False
    )

    @field_validator("token_url")
    @classmethod
    def _is_an_address(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("must be an http or https URL")
        if parts.username is not None or parts.password is not None:
            raise ValueError("must not hold a user name or password; use client_id and client_secret")
        return url

    @field_validator("refresh_skew_seconds")
    @classmethod
    def _is_a_time(cls, seconds: float) -> float:
        if not math.isfinite(seconds) or seconds < 0:
            raise ValueError("must be a finite number of seconds, 0 or more")
        return seconds

    @model_validator(mode="after")
    def _has_what_the_grant_needs(self) -> Self:
        needed = "client_id" if self.grant_type == "client_credentials" else "refresh_token"
        if not getattr(self, needed):
            raise ValueError(f"grant_type {self.grant_type} needs {needed}, which is missing or empty")
        return self

    @cached_property
    def digest(self) -> str:
        """Names the whole block: another value anywhere in it is another token."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def form(self, refresh_token: str | None) -> dict[str, str]:
        """The body of a token request."""
        reserved = {
            "grant_type": self.grant_type,
            "client_id": self.client_id,
            "client_secret": self.client_secret,
            "refresh_token": refresh_token if self.grant_type == "refresh_token" else None,
            "scope": self.scope,
            "audience": self.audience,
        }
        extra = {k: v for k, v in self.extra_token_params.items() if k.lower() not in RESERVED_PARAMS}
        return {name: value for name, value in {**extra, **reserved}.items() if value}

    def secrets(self) -> list[str]:
        """All secret values of the block."""
        values = (self.client_secret, self.refresh_token, *self.extra_token_params.values())
        return [value for value in values if value]


def ignored_params(block: OAuth) -> list[str]:
    """Extra parameters that would override a reserved one."""
    return sorted(name for name in block.extra_token_params if name.lower() in RESERVED_PARAMS)
