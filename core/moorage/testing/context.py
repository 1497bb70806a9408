"""A `GatewayContext` for a plugin's own tests, without a gateway."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from moorage.contract import (
    ExtensionsSnapshot,
    GatewayContext,
    Redactor,
    ServerConfig,
    Transport,
)
from moorage.contract.clock import Clock
from moorage.testing.clock import FakeClock


class StaticExtensions:
    """An `ExtensionsSource` whose servers the test sets."""

    def __init__(self, *servers: ServerConfig) -> None:
        self.set(*servers)

    def set(self, *servers: ServerConfig) -> None:
        """From now on these are the configured servers."""
        self._snapshot = ExtensionsSnapshot(servers={server.name: server for server in servers})

    def current(self) -> ExtensionsSnapshot:
        """See `ExtensionsSource`."""
        return self._snapshot


class RecordingRedactor:
    """A `Redactor` that takes every registered secret of 8 characters or more out of a text."""

    def __init__(self) -> None:
        self.known: list[str] = []

    def register(self, value: str, *, lasting: bool = True) -> None:
        """See `Redactor`."""
        if len(value) >= 8:
            self.known.append(value)

    def redact(self, text: str) -> str:
        """See `Redactor`."""
        for value in self.known:
            text = text.replace(value, "***")
        return text


def server_config(name: str = "server", *, transport: Transport = "http", **fields: Any) -> ServerConfig:
    """A configured server; ``sections`` holds the models of its sections by name."""
    place = {"command": "server"} if transport == "stdio" else {"url": "http://127.0.0.1:9/mcp"}
    return ServerConfig(name=name, transport=transport, **{**place, **fields})


def gateway_context(
    home: Path,
    *,
    clock: Clock | None = None,
    servers: tuple[ServerConfig, ...] = (),
    settings: Mapping[str, Any] | None = None,
) -> GatewayContext:
    """What a plugin's ``build`` is given: a fake clock, these servers, these settings, no store.

    ``settings`` may hold ``{"plugins": {"<name>": {...}}}``, the tables of plugins in ``moorage.toml``.
    """
    context = GatewayContext(
        home=home,
        replica_id="replica-under-test",
        database_url="memory://",
        clock=clock or FakeClock(),
        extensions=StaticExtensions(*servers),
        settings=settings or {},
    )
    context.provide(Redactor, RecordingRedactor())
    return context
