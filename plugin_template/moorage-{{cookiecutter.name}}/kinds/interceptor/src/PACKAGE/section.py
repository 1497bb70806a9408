"""The interceptor's section in a server's config."""

from moorage.contract import CredentialDenied, check_header
from pydantic import BaseModel, ConfigDict, Field, field_validator


class Section(BaseModel):
    """A header, and each user's value of it. Values may be placeholders."""

    model_config = ConfigDict(extra="allow", frozen=True, hide_input_in_errors=True)

    header: str = "X-User-Token"
    users: dict[str, str | None] = Field(default_factory=dict, repr=False)

    @field_validator("header")
    @classmethod
    def _can_be_sent(cls, header: str) -> str:
        try:
            check_header(header, "value", source="{{ cookiecutter.section }}")
        except CredentialDenied as denied:
            raise ValueError(str(denied)) from None
        return header
