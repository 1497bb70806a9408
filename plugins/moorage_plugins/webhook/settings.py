"""The table ``[plugins.webhook]``."""

import os
from base64 import b64decode
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, HttpUrl, SecretStr, ValidationError

from moorage.contract import ConfigError

SECRET_VARIABLE = "MOORAGE_WEBHOOK_SECRET"  # noqa: S105
PLACE = "plugins.webhook"


def _without_user_info(url: HttpUrl) -> HttpUrl:
    if url.username or url.password:
        raise ValueError("may carry no user info: receivers know us by the signature")
    return url


def _a_key(secret: SecretStr) -> SecretStr:
    text = secret.get_secret_value().removeprefix("whsec_").rstrip("=")
    try:
        size_bytes = len(b64decode(text + "=" * (-len(text) % 4), validate=True))
    except ValueError:
        raise ValueError("must be base64, with or without 'whsec_' before it") from None
    if not 24 <= size_bytes <= 64:
        raise ValueError("must be 24 to 64 bytes in base64, as Standard Webhooks asks")
    return secret


class WebhookSettings(BaseModel):
    """Where attention events go. The signing secret is base64, as Standard Webhooks writes it."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    url: Annotated[HttpUrl, AfterValidator(_without_user_info)]
    secret: Annotated[SecretStr, AfterValidator(_a_key)]
    timeout_seconds: float = Field(10.0, ge=0.1, le=60.0)


def read(options: Any, env: Mapping[str, str] = os.environ) -> WebhookSettings:
    """Check the table; the variable `MOORAGE_WEBHOOK_SECRET` goes before its ``secret``.

    Raises `ConfigError`, which never quotes a value.
    """
    table = dict(options) if isinstance(options, Mapping) else {}
    if env.get(SECRET_VARIABLE):
        table["secret"] = env[SECRET_VARIABLE]
    if "secret" not in table:
        raise ConfigError(f"is missing: set it, or the variable {SECRET_VARIABLE}", where=f"{PLACE}.secret")
    try:
        return WebhookSettings.model_validate(table)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join((PLACE, *map(str, first["loc"])))
        raise ConfigError(first["msg"], where=where) from None
