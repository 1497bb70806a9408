"""The one empty mapping, immutable, for defaults of frozen payloads."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

EMPTY: Mapping[str, Any] = MappingProxyType({})


def empty() -> Mapping[str, Any]:
    """A ``default_factory``: dataclasses refuse a mapping proxy as a plain default."""
    return EMPTY
