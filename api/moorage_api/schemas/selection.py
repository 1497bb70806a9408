"""The ``select`` of the LangGraph Platform: only some fields of each item."""

from collections.abc import Sequence
from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec import UnsetType

T = TypeVar("T")
Selectable: TypeAlias = T | UnsetType
"""A field that an answer has unless the request selects others."""


def selected(item: Any, fields: Sequence[str] | None) -> Any:
    """The item with the named top-level fields; ``values.x`` keeps that key of the values alone. Names
    that do not exist are ignored; without names the item is whole."""
    if not fields:
        return item
    whole = msgspec.structs.asdict(item)
    chosen = {name: value for name, value in whole.items() if name in fields}
    inner = {name.partition(".")[2] for name in fields if name.startswith("values.")}
    if inner and "values" in whole and "values" not in chosen:
        values = whole["values"] or {}
        chosen["values"] = {key: value for key, value in values.items() if key in inner}
    return chosen


def next_page(offset: int, limit: int, found: int) -> dict[str, str]:
    """The header that says where the next page begins; a page that is not full is the last."""
    return {"X-Pagination-Next": str(offset + limit)} if found == limit else {}
