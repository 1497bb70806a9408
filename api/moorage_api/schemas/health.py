"""Health."""

from typing import Annotated

from msgspec import Meta, Struct


class Health(Struct):
    status: Annotated[str, Meta(examples=["ok"])]
