"""MCP servers as configured (CONF-1, CONF-4, CONF-7, CONF-8)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from moorage.contract.empty import empty

Transport = Literal["stdio", "sse", "http"]
DEFAULT_SESSION_INIT_TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """One healthy entry of ``mcpServers``, placeholders resolved.

    ``sections`` and ``tool_sections`` hold validated models of the plugins that own them (PLUG-5), by
    section name, and by raw tool name then section name. Resolved values may be secrets: a ``repr`` hides
    them, and they never leave the process (CONF-3).
    """

    name: str
    transport: Transport
    enabled: bool = True
    command: str | None = field(default=None, repr=False)
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=empty, repr=False)
    cwd: str | None = None
    url: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=empty, repr=False)
    session_init_timeout_seconds: float | None = DEFAULT_SESSION_INIT_TIMEOUT_SECONDS
    tool_call_timeout_seconds: float | None = None
    tool_name_prefix: bool = True
    sections: Mapping[str, Any] = field(default_factory=empty, repr=False)
    tool_sections: Mapping[str, Mapping[str, Any]] = field(default_factory=empty, repr=False)
    extra: Mapping[str, Any] = field(default_factory=empty, repr=False)
    launch_signature: str = ""
    """Changes when what a session was started with changes (STDIO-6); not reversible to its content."""


@dataclass(frozen=True, slots=True)
class ConfigFault:
    """Something wrong in the extensions config, and what to do about it.

    ``server`` is None where the whole file is concerned; ``where`` is a dotted path into the file.
    ``fatal`` faults keep their server (or file) from loading; the others are warnings.
    """

    where: str
    message: str
    server: str | None = None
    fatal: bool = True


@dataclass(frozen=True, slots=True)
class Signature:
    """What change detection compares (CONF-4)."""

    path: str
    mtime_ns: int
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class ExtensionsSnapshot:
    """The extensions config as last read; never changes once made."""

    path: Path | None = None
    signature: Signature | None = None
    servers: Mapping[str, ServerConfig] = field(default_factory=empty)
    interceptors: tuple[str, ...] = ()
    """``mcpInterceptors``: ``module:builder`` paths (PLUG-9)."""
    faults: tuple[ConfigFault, ...] = ()
    refused: Mapping[str, str] = field(default_factory=empty)
    """Servers that are in the file but did not load: name → reason."""


class ExtensionsSource(Protocol):
    """Where the present extensions config comes from."""

    def current(self) -> ExtensionsSnapshot:
        """The snapshot in force; re-reads the file if its signature moved (CONF-4). Never raises for a
        broken file: the last good configuration stays in force (CONF-7)."""
        ...
