"""The section in a server's config, and the settings of the store."""

import os
from collections.abc import Mapping
from typing import Any

from moorage.contract import ConfigError, CredentialDenied, check_header
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator

TOKEN_VARIABLE = "SECRETS_STORE_TOKEN"
PLACE = "plugins.secrets-store"


class Section(BaseModel):
    """Which secret becomes which header. ``{user}`` in ``path`` stands for the calling user's id."""

    model_config = ConfigDict(extra="allow", frozen=True, hide_input_in_errors=True)

    path: str
    field: str = "token"
    header: str = "Authorization"
    scheme: str = "Bearer"
    """Put before the value; empty for none."""

    @field_validator("header")
    @classmethod
    def _can_be_sent(cls, header: str) -> str:
        try:
            check_header(header, "value", source="secrets_store")
        except CredentialDenied as denied:
            raise ValueError(str(denied)) from None
        return header


class Settings(BaseModel):
    """The table ``[plugins.secrets-store]``: a store that speaks the KV v2 protocol of HashiCorp Vault."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    url: str
    mount: str = "secret"
    token: SecretStr
    cache_seconds: float = Field(default=30.0, ge=0, le=3_600)
    timeout_seconds: float = Field(default=5.0, gt=0, le=60)


def read(options: Any, env: Mapping[str, str] = os.environ) -> Settings:
    """`SECRETS_STORE_TOKEN` goes before ``token``. Raises `ConfigError`, which quotes no value."""
    table = dict(options) if isinstance(options, Mapping) else {}
    if env.get(TOKEN_VARIABLE):
        table["token"] = env[TOKEN_VARIABLE]
    try:
        return Settings.model_validate(table)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise ConfigError(first["msg"], where=".".join((PLACE, *map(str, first["loc"])))) from None
