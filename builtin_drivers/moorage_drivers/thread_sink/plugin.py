"""Contributes the sink ``thread``."""

from collections.abc import Iterable

from moorage.contract import GatewayContext, NotificationSink, SinkSpec, hookimpl


def _build(context: GatewayContext) -> NotificationSink:
    from moorage_drivers.thread_sink.sink import ThreadSink

    return ThreadSink(context)


@hookimpl
def moorage_notification_sinks() -> Iterable[SinkSpec]:
    return [SinkSpec("thread", _build)]
