"""Errors as documents (RFC 9457)."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType


class FieldFault(Struct, frozen=True):
    """What is wrong with one field; the submitted value is never repeated."""

    path: Annotated[str, Meta(description="Dotted path; empty for the body itself.", examples=["config"])]
    reason: Annotated[str, Meta(examples=["Input should be a valid dictionary"])]


class Problem(Struct, omit_defaults=False):
    """An RFC 9457 problem document."""

    type: Annotated[str, Meta(examples=["urn:moorage:problem:not-found"])]
    title: Annotated[str, Meta(examples=["Not Found"])]
    status: Annotated[int, Meta(examples=[404])]
    detail: Annotated[str, Meta(examples=["no such thread"])]
    instance: Annotated[str, Meta(description="Names this very occurrence in the log.")] | UnsetType = UNSET
    errors: list[FieldFault] | UnsetType = UNSET
