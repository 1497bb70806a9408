"""The conformance suite of notification sinks (DX-2)."""

import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from moorage.contract import (
    AttentionKind,
    GatewayContext,
    Notification,
    NotificationSink,
    SinkSpec,
    TaskStatus,
)
from moorage.testing.checks import NotApplicable, Shortfall, Suite
from moorage.testing.context import gateway_context
from moorage.testing.sink_checks import SinkChecks


@dataclass
class SinkBench:
    """One sink, and how another process would build it."""

    suite: "SinkConformance"
    gateway: GatewayContext
    sink: NotificationSink

    def rebuilt(self) -> NotificationSink:
        return built(self.suite.spec(), self.gateway)


def built(spec: SinkSpec, gateway: GatewayContext) -> NotificationSink:
    """The sink; raises `Shortfall` where the settings of the suite configure none."""
    sink = spec.build(gateway)
    if sink is None:
        raise Shortfall(f"sink {spec.name!r} is not configured: say how in settings()")
    return sink


class SinkConformance(Suite, SinkChecks):
    """Holds a notification sink to the contract: idempotent on retry, honest about failure, cancellable.

    Subclass it as ``class TestMySink(SinkConformance)`` and give it a target: `open_target` runs while a
    check does, `effects` says what has arrived there, `break_target` and `mend_target` make it fail.
    """

    deduplicates: Literal["sink", "receiver"] = "sink"
    """Who sees to it that a repeated delivery has one effect. For "receiver" every effect must carry the
    same id when it is repeated: `id_of`."""

    def spec(self) -> SinkSpec:
        """What the plugin contributes."""
        raise NotImplementedError(f"{type(self).__name__} must say what its plugin contributes: spec()")

    def open_target(self) -> AbstractAsyncContextManager[Any]:
        """Where deliveries go, running while a check does."""
        return _nothing()

    def effects(self) -> Sequence[Any]:
        """What has arrived so far, oldest first; each shows the task's id somewhere in its ``repr``."""
        raise NotImplementedError(f"{type(self).__name__} must say what has arrived: effects()")

    def id_of(self, effect: Any) -> str | None:
        """The id by which a receiver recognises a repetition."""
        return None

    def break_target(self) -> None:
        """From now on the target takes nothing."""
        raise NotApplicable("the target cannot fail (break_target)")

    def mend_target(self) -> None:
        """The target takes deliveries again."""

    def slow_target(self, seconds: float) -> None:
        """From now on the target takes this long before it takes a delivery."""
        raise NotApplicable("the target cannot be slow (slow_target)")

    def hidden(self) -> Sequence[str]:
        """Values that no outcome and no error may show: signing secrets, tokens."""
        return ()

    def settings(self) -> Mapping[str, Any]:
        """The settings tables that ``build`` may read."""
        return {}

    def prepare(self, gateway: GatewayContext) -> None:
        """Provide what the sink asks of the gateway."""

    def notification(self, number: int = 1, attempt: int = 1, **fields: Any) -> Notification:
        """An attention event; the same number and attempt are the same delivery."""
        task = f"task-{number}"
        made: dict[str, Any] = {
            "task_name": "render",
            "version": 1,
            "kind": AttentionKind.TERMINAL,
            "status": TaskStatus.COMPLETED,
            "user_id": "alice",
            "thread_id": "thread-1",
            "assistant_id": "direct",
            "server_name": "renderer",
            "result": {"frames": 3},
            "result_preview": '{"frames": 3}',
        }
        made |= fields
        delivery = f"{task}:{made['version']}:{attempt}"
        return Notification(delivery_id=delivery, task_id=task, attempt=attempt, **made)

    @asynccontextmanager
    async def _bench(self) -> AsyncIterator[SinkBench]:
        with tempfile.TemporaryDirectory() as folder:
            async with self.open_target():
                gateway = gateway_context(Path(folder), settings=self.settings())
                self.prepare(gateway)
                sink = built(self.spec(), gateway)
                try:
                    yield SinkBench(self, gateway, sink)
                finally:
                    close = getattr(sink, "aclose", None)
                    if close is not None:
                        await close()


@asynccontextmanager
async def _nothing() -> AsyncIterator[None]:
    yield
