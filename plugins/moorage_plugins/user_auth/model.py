"""The section ``user_auth``."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from moorage.contract import CredentialDenied, check_header


class UserAuth(BaseModel):
    """``{header, users: {user id: value}, on_missing}``; values may be placeholders (CRED-4)."""

    model_config = ConfigDict(extra="allow", frozen=True, hide_input_in_errors=True)

    header: str = "Authorization"
    users: dict[str, str | None] = Field(default_factory=dict, repr=False)
    """An empty or null value is a missing one. Ids are compared exactly."""
    on_missing: Literal["deny", "passthrough"] = "deny"

    @field_validator("header")
    @classmethod
    def _can_be_sent(cls, header: str) -> str:
        try:
            check_header(header, "value", source="user_auth")
        except CredentialDenied as denied:
            raise ValueError(str(denied)) from None
        return header
