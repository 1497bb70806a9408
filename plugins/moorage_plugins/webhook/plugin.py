"""Contributes the sink ``webhook``, in force where ``[plugins.webhook]`` names a receiver (NOTE-4)."""

from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from moorage.contract import GatewayContext, LifecycleSpec, NotificationSink, SinkSpec, hookimpl

if TYPE_CHECKING:
    from moorage_plugins.webhook.sink import WebhookSink

MOORAGE_API = ">=0.1"
NAME = "webhook"


def _options(context: GatewayContext) -> Any:
    return context.settings.get("plugins", {}).get(NAME)


def _sink(context: GatewayContext) -> "WebhookSink":
    from moorage_plugins.webhook.sink import WebhookSink

    if not context.has(WebhookSink):
        context.provide(WebhookSink, WebhookSink.configured(_options(context), context))
    return context.service(WebhookSink)


def _build(context: GatewayContext) -> NotificationSink | None:
    return None if _options(context) is None else _sink(context)


def _open(context: GatewayContext) -> AbstractAsyncContextManager[None]:
    from contextlib import nullcontext

    return nullcontext() if _options(context) is None else _sink(context).running()


@hookimpl
def moorage_notification_sinks() -> Iterable[SinkSpec]:
    return (SinkSpec(NAME, _build),)


@hookimpl
def moorage_lifecycle() -> Iterable[LifecycleSpec]:
    return (LifecycleSpec(NAME, 1000, _open),)
