"""Posts attention events to one receiver, signed as Standard Webhooks describes (NOTE-4)."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx
from standardwebhooks import Webhook

from moorage.contract import (
    Clock,
    DeliveryOutcome,
    DeliveryState,
    GatewayContext,
    Notification,
    Redactor,
)
from moorage_plugins.webhook.settings import WebhookSettings, read


class WebhookSink:
    """Idempotent by ``webhook-id``: one per attention event, the same in every repetition (TASK-19)."""

    def __init__(self, settings: WebhookSettings, clock: Clock) -> None:
        self._url = str(settings.url)
        self._signer = Webhook(settings.secret.get_secret_value())
        self._timeout_seconds = settings.timeout_seconds
        self._clock = clock
        self._http: httpx.AsyncClient | None = None

    @classmethod
    def configured(cls, options: Any, context: GatewayContext) -> "WebhookSink":
        """Raises `ConfigError`."""
        settings = read(options)
        if context.has(Redactor):
            redactor = context.service(Redactor)
            redactor.register(settings.secret.get_secret_value())
            for _, value in settings.url.query_params():
                redactor.register(value)
        return cls(settings, context.clock)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keeps connections while the gateway runs."""
        # A redirect would carry the event to a place that nobody configured.
        async with httpx.AsyncClient(timeout=self._timeout_seconds, follow_redirects=False) as http:
            self._http = http
            try:
                yield
            finally:
                self._http = None

    async def deliver(self, notification: Notification) -> DeliveryOutcome:
        if self._http is None:
            return DeliveryOutcome(DeliveryState.PENDING, "the gateway is starting or stopping")
        body = json.dumps(event_of(notification))
        event_id = f"{notification.task_id}:{notification.version}"
        now = self._clock.now().astimezone(UTC)
        headers = {
            "content-type": "application/json",
            "webhook-id": event_id,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": self._signer.sign(event_id, now, body),
        }
        try:
            async with self._http.stream("POST", self._url, content=body, headers=headers) as answer:
                return _outcome(answer, now)
        except httpx.HTTPError as error:
            # Its text may quote the address.
            return DeliveryOutcome(DeliveryState.FAILED, f"no answer: {type(error).__name__}")


def event_of(notification: Notification) -> dict[str, Any]:
    """The body: ``type`` is ``task.`` and the state that wants attention."""
    kind = notification.kind.value
    state = notification.status.value if kind == "terminal" else kind
    return {
        "type": f"task.{state}",
        "data": {
            "task_id": notification.task_id,
            "task_name": notification.task_name,
            "version": notification.version,
            "status": notification.status.value,
            "user_id": notification.user_id,
            "thread_id": notification.thread_id,
            "assistant_id": notification.assistant_id,
            "server_name": notification.server_name,
            "error": notification.error,
            "result": notification.result,
            "result_preview": notification.result_preview,
            "result_truncated": notification.result_truncated,
            "result_artifact": notification.result_artifact,
            "input_required": notification.input_required,
        },
    }


def _outcome(answer: httpx.Response, now: datetime) -> DeliveryOutcome:
    if answer.is_success:
        return DeliveryOutcome(DeliveryState.DELIVERED)
    reason = f"the receiver answered {answer.status_code}"
    if answer.status_code == httpx.codes.GONE:
        return DeliveryOutcome(DeliveryState.GONE, reason)
    if answer.is_redirect:
        reason += ": redirects are not followed"
    return DeliveryOutcome(DeliveryState.FAILED, reason, _retry_after_seconds(answer, now))


def _retry_after_seconds(answer: httpx.Response, now: datetime) -> float | None:
    """RFC 9110, 10.2.3: seconds or a date; None where it is neither."""
    value = answer.headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        at = parsedate_to_datetime(value)
    except ValueError:
        return None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() - now.timestamp()
