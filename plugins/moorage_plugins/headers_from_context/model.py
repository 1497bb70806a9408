"""The section ``headers_from_context``."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, field_validator

from moorage.contract import CredentialDenied, Headers


class HeadersFromContext(BaseModel):
    """``{headers: {header name: key of config.context.secrets}, on_missing}``: names only (CRED-5)."""

    model_config = ConfigDict(extra="allow", frozen=True, hide_input_in_errors=True)

    headers: dict[str, str]
    on_missing: Literal["deny", "passthrough"] = "deny"

    @field_validator("headers")
    @classmethod
    def _can_be_sent(cls, headers: dict[str, str]) -> dict[str, str]:
        try:
            Headers(dict.fromkeys(headers, "value"), source="headers_from_context")
        except CredentialDenied as denied:
            raise ValueError(str(denied)) from None
        for name, key in headers.items():
            if not key.strip():
                raise ValueError(f"header {name!r} names no key of the secrets")
        return headers
