"""The extensions config (ADMIN)."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from msgspec import Meta, Struct

_SERVERS = Meta(
    description="By name. Literal secrets are `***` (those of `oauth` null); placeholders are shown.",
    examples=[{"files": {"command": "npx", "args": ["-y", "server-files"], "env": {"API_KEY": "***"}}}],
)


class ConfigDocument(Struct, kw_only=True):
    mcpServers: Annotated[Mapping[str, Any], _SERVERS]


class ServerSwitch(Struct, kw_only=True, forbid_unknown_fields=True):
    server: Annotated[str, Meta(description="The server's name.", examples=["files"])]
    enabled: bool


class ConfigNote(Struct, kw_only=True):
    where: Annotated[str, Meta(examples=["mcpServers.files.routing.priorty"])]
    message: str


class ConfigReport(Struct, kw_only=True):
    """What a change did, or with `dry_run` would do. No value is repeated."""

    written: bool
    added: Sequence[str]
    removed: Sequence[str]
    changed: Annotated[
        Mapping[str, Sequence[str]],
        Meta(description="Server to dotted keys.", examples=[{"files": ["env.API_KEY"]}]),
    ]
    warnings: Sequence[ConfigNote]
    tasks_after_restart: Annotated[
        Sequence[str], Meta(description="New servers whose durable tasks will work after a restart only.")
    ]
