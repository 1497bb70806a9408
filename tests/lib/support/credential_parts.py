"""What the tests of credential plugins share: a clock, a memory of memos, a context without a gateway."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from moorage.calls.redact import SecretRegistry
from moorage.contract import Clock, ExtensionsSnapshot, GatewayContext, Redactor, ServerConfig


class SteppedClock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self._seconds = 1_000.0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self._seconds)

    def monotonic(self) -> float:
        return self._seconds

    async def sleep(self, seconds: float) -> None:
        self._seconds += seconds
        await asyncio.sleep(0)

    def advance(self, seconds: float) -> None:
        self._seconds += seconds


class FixedExtensions:
    """An extensions source whose servers tests set directly."""

    def __init__(self, *servers: ServerConfig) -> None:
        self.servers = {server.name: server for server in servers}

    def current(self) -> ExtensionsSnapshot:
        return ExtensionsSnapshot(servers=dict(self.servers))


def gateway_context(home: Path, *, clock: Clock | None = None, **fields: Any) -> GatewayContext:
    context = GatewayContext(
        home=home,
        replica_id="test",
        database_url="sqlite://",
        clock=clock or SteppedClock(),
        extensions=FixedExtensions(),
        **fields,
    )
    context.provide(Redactor, SecretRegistry())
    return context
