"""From LangGraph's objects to JSON, in LangGraph Platform's shapes (RUN-5)."""

import base64
import dataclasses
import math
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any
from uuid import UUID

from langchain_core.messages import BaseMessage
from langgraph.types import Interrupt
from pydantic import BaseModel

from moorage.contract import CallContext


def to_json(value: Any) -> Any:
    """A JSON-compatible copy. What has no JSON form becomes the name of its type, never its ``repr``: that
    could quote what must not be shown."""
    if value is None or isinstance(value, bool | int | str):
        return value.value if isinstance(value, Enum) else value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, CallContext):
        return None  # carries the run's secrets
    if isinstance(value, BaseMessage):
        return message_to_json(value)
    if isinstance(value, Interrupt):
        return {"value": to_json(value.value), "id": value.id}
    if isinstance(value, Mapping):
        return {_key(key): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_json(item) for item in value]
    return _scalar(value)


def message_to_json(message: BaseMessage) -> dict[str, Any]:
    """The message's own fields (``type``, ``content``, ``id``, ``tool_calls``, …)."""
    return {name: to_json(item) for name, item in message.model_dump().items()}


def _key(key: Any) -> str:
    return key if isinstance(key, str) else str(to_json(key))


def _scalar(value: Any) -> Any:
    if isinstance(value, Enum):
        return to_json(value.value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, UUID | Decimal | PurePath):
        return str(value)
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    if isinstance(value, BaseException):
        return {"error": type(value).__name__, "message": str(value)}
    if isinstance(value, BaseModel):
        return {name: to_json(item) for name, item in value.model_dump().items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: to_json(getattr(value, item.name)) for item in dataclasses.fields(value)}
    return f"<{type(value).__name__}>"
