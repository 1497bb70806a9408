"""JSON that always encodes: what a remote said may hold what JSON or UTF-8 cannot (BOUND-4)."""

import json
import math
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from litestar import Response
from litestar.types import Serializer

T = TypeVar("T")


def encode(value: Any) -> bytes:
    """Compact JSON. NaN and infinity become null, a lone surrogate is escaped, never an exception for
    either; mappings, sequences, structs and datetimes are understood."""
    try:
        return msgspec.json.encode(value, enc_hook=_plain)
    except (UnicodeEncodeError, OverflowError):
        plain = _finite(msgspec.to_builtins(value, enc_hook=_plain))
        return json.dumps(plain, separators=(",", ":")).encode("ascii")


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise NotImplementedError(f"{type(value).__name__} is not JSON")


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


class JsonResponse(Response[T]):
    """A response whose JSON goes through `encode`."""

    def render(self, content: Any, media_type: str, enc_hook: Serializer | None = None) -> bytes:
        if "json" in media_type and not isinstance(content, bytes):
            return encode(content)
        return super().render(content, media_type, enc_hook or _plain)
