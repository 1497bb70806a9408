"""A sink that prints, once for each delivery id."""

import sys
from collections.abc import Iterable

from moorage.contract import (
    DeliveryOutcome,
    DeliveryState,
    GatewayContext,
    Notification,
    NotificationSink,
    SinkSpec,
    hookimpl,
)


class Printer:
    def __init__(self) -> None:
        self._seen: set[str] = set()

    async def deliver(self, notification: Notification) -> DeliveryOutcome:
        if notification.delivery_id not in self._seen:
            self._seen.add(notification.delivery_id)
            print(f"{notification.task_name} is {notification.status.value}")
        return DeliveryOutcome(DeliveryState.DELIVERED)


def build(context: GatewayContext) -> NotificationSink:
    return Printer()


@hookimpl
def moorage_notification_sinks() -> Iterable[SinkSpec]:
    return (SinkSpec("printer", build),)


if __name__ == "__main__":
    import asyncio
    from pathlib import Path

    from moorage.contract import AttentionKind, TaskStatus
    from moorage.testing import gateway_context, host_with

    (one,) = host_with(sys.modules[__name__]).sinks()
    sink = one.spec.build(gateway_context(Path("unused")))
    event = Notification(
        delivery_id="task-1:1:0",
        task_id="task-1",
        task_name="render",
        version=1,
        attempt=0,
        kind=AttentionKind.TERMINAL,
        status=TaskStatus.COMPLETED,
        user_id="alice",
        thread_id="t",
        assistant_id=None,
        server_name="renderer",
    )

    async def twice() -> None:
        await sink.deliver(event)
        await sink.deliver(event)

    asyncio.run(twice())
