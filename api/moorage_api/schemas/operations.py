"""What operators see: plugins, servers, tools (API-5)."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct


class PluginContribution(Struct, kw_only=True):
    hook: Annotated[str, Meta(examples=["moorage_task_drivers"])]
    name: Annotated[str, Meta(examples=["ordinary"])]
    precedence: int | None = None
    section: str | None = None
    order: Annotated[str | None, Meta(examples=["2 of 4 by precedence 200, after 'oauth'"])] = None
    """Where it stands among those of its hook, and why; null where order means nothing."""


class PluginFailure(Struct, kw_only=True):
    at: datetime
    """When it was seen last."""
    text: str
    first_at: datetime
    count: int = 1


class PluginReport(Struct, kw_only=True):
    name: Annotated[str, Meta(examples=["ordinary"])]
    state: Annotated[str, Meta(examples=["loaded"])]
    distribution: str | None = None
    version: str | None = None
    entry_point: str | None = None
    hooks: Sequence[str] = ()
    contributions: Sequence[PluginContribution] = ()
    api_range: str | None = None
    error: str | None = None
    seconds: float = 0.0
    """What importing it and calling its hooks took."""
    failures: Sequence[PluginFailure] = ()
    """What it did wrong since the start: each fault once, the one seen last at the end; bounded."""
    calls: int = 0
    """How many calls its objects got since the start."""
    seconds_in_calls: float = 0.0
    """From call to answer, waiting included; of an interceptor without the inner call."""


class PluginList(Struct):
    items: Sequence[PluginReport]


class ServerReport(Struct, kw_only=True):
    name: str
    transport: str
    enabled: bool
    state: Literal["unknown", "ready", "failed", "refused", "disabled"]
    tool_count: int = 0
    error: str | None = None
    warnings: Sequence[str] = ()
    checked_at: datetime | None = None


class ServerList(Struct):
    items: Sequence[ServerReport]


class Tool(Struct, kw_only=True):
    name: Annotated[str, Meta(examples=["jobs_hash_folder"])]
    raw_name: str
    server: str
    description: str
    input_schema: Mapping[str, Any]
    durable: bool


class ToolList(Struct):
    items: Sequence[Tool]


class CacheReset(Struct):
    status: Annotated[str, Meta(examples=["reset"])]
