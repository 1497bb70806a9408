"""Contributes the sinks ``thread`` and ``events``."""

from collections.abc import Iterable

from moorage.contract import GatewayContext, NotificationSink, SinkSpec, hookimpl


def _build(context: GatewayContext) -> NotificationSink:
    from moorage_drivers.thread_sink.sink import ThreadSink

    return ThreadSink(context)


def _build_events(context: GatewayContext) -> NotificationSink:
    from moorage.tasks.event_stream import EventStreamSink

    store = context.durable_store()
    return EventStreamSink(store.events, store.threads)


@hookimpl
def moorage_notification_sinks() -> Iterable[SinkSpec]:
    return [SinkSpec("thread", _build), SinkSpec("events", _build_events)]
