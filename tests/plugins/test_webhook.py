"""The webhook sink: what a receiver gets, and what its answers mean (NOTE-4)."""

import asyncio
import base64
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from litestar import Litestar, Request, post
from litestar.response import Response
from standardwebhooks import Webhook
from support.http import serving

from moorage.clock import SystemClock
from moorage.contract import (
    AttentionKind,
    ConfigError,
    DeliveryOutcome,
    DeliveryState,
    Notification,
    TaskStatus,
)
from moorage_api.settings import ApiSettings
from moorage_api.wiring import KEY, Runtime
from moorage_plugins.webhook.settings import read
from moorage_plugins.webhook.sink import WebhookSink

pytestmark = pytest.mark.req("NOTE-4")

SECRET = "whsec_" + base64.b64encode(b"a key that nobody else knows").decode()


def event(version: int = 1, attempt: int = 0, **other: Any) -> Notification:
    told: dict[str, Any] = {
        "delivery_id": f"t1:{version}:{attempt}",
        "task_id": "t1",
        "task_name": "count",
        "version": version,
        "attempt": attempt,
        "kind": AttentionKind.TERMINAL,
        "status": TaskStatus.COMPLETED,
        "user_id": "alice",
        "thread_id": "thread",
        "assistant_id": "direct",
        "server_name": "jobs",
        "result": {"files": 3, "odd": "\ud800 \u2028"},
    }
    return Notification(**{**told, **other})


class Receiver:
    """Answers as told; keeps what it gets."""

    def __init__(
        self, status: int = 204, headers: Mapping[str, str] | None = None, slow: bool = False
    ) -> None:
        self.status, self.headers, self.slow = status, dict(headers or {}), slow
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.released = asyncio.Event()

    @asynccontextmanager
    async def told_by_a_sink(self, query: str = "", **settings: Any) -> AsyncIterator[WebhookSink]:
        @post(["/hook", "/elsewhere"])
        async def hook(request: Request[Any, Any, Any]) -> Response[None]:
            self.got.append((dict(request.headers), await request.body()))
            if self.slow:
                await self.released.wait()
            return Response(None, status_code=self.status, headers=self.headers)

        app = Litestar([hook], openapi_config=None, logging_config=None)
        app.state[KEY] = Runtime(ApiSettings(authentication=False))
        async with serving(app) as url:
            table = {"url": f"{url}/hook{query}", "secret": SECRET, **settings}
            sink = WebhookSink(read(table, {}), SystemClock())
            async with sink.running():
                yield sink
                self.released.set()


async def outcome(receiver: Receiver, **settings: Any) -> DeliveryOutcome:
    async with receiver.told_by_a_sink(**settings) as sink:
        return await sink.deliver(event())


async def test_the_standards_own_library_verifies_what_arrives() -> None:
    receiver = Receiver()
    async with receiver.told_by_a_sink() as sink:
        assert (await sink.deliver(event())).state is DeliveryState.DELIVERED
        asked = event(2, kind=AttentionKind.INPUT_REQUIRED, status=TaskStatus.INPUT_REQUIRED)
        assert (await sink.deliver(asked)).state is DeliveryState.DELIVERED

    first, second = (Webhook(SECRET).verify(body, headers) for headers, body in receiver.got)
    assert first["type"] == "task.completed"
    assert first["data"]["result"] == {"files": 3, "odd": "\ud800 \u2028"}
    assert (first["data"]["user_id"], first["data"]["thread_id"]) == ("alice", "thread")
    assert second["type"] == "task.input_required"
    headers, body = receiver.got[0]
    with pytest.raises(Exception, match="signature"):
        Webhook(base64.b64encode(b"another")).verify(body, headers)


@pytest.mark.req("TASK-19")
async def test_every_repetition_of_an_event_has_one_id_and_the_next_event_another() -> None:
    receiver = Receiver(500)
    async with receiver.told_by_a_sink() as sink:
        for one in (event(1, 0), event(1, 0), event(1, 1), event(2, 0)):
            await sink.deliver(one)
    ids = [headers["webhook-id"] for headers, _ in receiver.got]
    assert ids[0] == ids[1] == ids[2] != ids[3]


@pytest.mark.parametrize(
    ("status", "state"),
    [
        (200, DeliveryState.DELIVERED),
        (202, DeliveryState.DELIVERED),
        (410, DeliveryState.GONE),
        (400, DeliveryState.FAILED),
        (404, DeliveryState.FAILED),
        (500, DeliveryState.FAILED),
    ],
)
async def test_what_an_answer_means(status: int, state: DeliveryState) -> None:
    answer = await outcome(Receiver(status))
    assert answer.state is state
    if state is not DeliveryState.DELIVERED:
        assert str(status) in (answer.reason or "")


async def test_a_redirect_is_not_followed() -> None:
    receiver = Receiver(307, {"Location": "/elsewhere"})
    answer = await outcome(receiver)
    assert answer.state is DeliveryState.FAILED
    assert "redirect" in (answer.reason or "")
    assert len(receiver.got) == 1


async def test_retry_after_is_heard() -> None:
    in_an_hour = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    for value, least, most in (("120", 120, 120), (in_an_hour, 3_000, 3_601)):
        answer = await outcome(Receiver(503, {"Retry-After": value}))
        assert answer.retry_after_seconds is not None
        assert least <= answer.retry_after_seconds <= most


@pytest.mark.parametrize("value", ["", "soon", "-5", "1e9", "\u0661", "Wed, 99 Foo 2026 00:00:00 GMT"])
async def test_a_retry_after_that_is_none_changes_nothing(value: str) -> None:
    answer = await outcome(Receiver(503, {"Retry-After": value.encode().decode("latin-1")}))
    assert (answer.state, answer.retry_after_seconds) == (DeliveryState.FAILED, None)


async def test_a_receiver_that_is_not_there_or_slow_is_a_failure_that_quotes_no_address() -> None:
    slow = Receiver(slow=True)
    late = await outcome(slow, query="?token=tok-abcdefgh", timeout_seconds=0.2)
    sink = WebhookSink(
        read({"url": "http://127.0.0.1:9/?token=tok-abcdefgh", "secret": SECRET}, {}), SystemClock()
    )
    async with sink.running():
        absent = await sink.deliver(event())
    for answer in (late, absent):
        assert answer.state is DeliveryState.FAILED
        assert answer.reason
        assert "tok-" not in answer.reason


@pytest.mark.req("CONF-7")
@pytest.mark.parametrize(
    ("table", "names"),
    [
        ({"secret": SECRET}, "plugins.webhook.url"),
        ({"url": "https://ci.example/"}, "plugins.webhook.secret"),
        ({"url": "ftp://ci.example/", "secret": SECRET}, "plugins.webhook.url"),
        ({"url": "https://me:pass-abcdefgh@ci.example/", "secret": SECRET}, "plugins.webhook.url"),
        ({"url": "https://ci.example/", "secret": "pass-abcdefgh!"}, "plugins.webhook.secret"),
        ({"url": "https://ci.example/", "secret": ""}, "plugins.webhook.secret"),
        ({"url": "https://ci.example/", "secret": "whsec_abcdefghabcdefgh"}, "plugins.webhook.secret"),
        (
            {"url": "https://ci.example/", "secret": SECRET, "timeout_seconds": 0},
            "plugins.webhook.timeout_seconds",
        ),
        ({"url": "https://ci.example/", "secret": SECRET, "urls": []}, "plugins.webhook.urls"),
        ("https://ci.example/", "plugins.webhook"),
    ],
)
def test_a_wrong_table_names_the_key_and_quotes_nothing(table: Any, names: str) -> None:
    with pytest.raises(ConfigError) as error:
        read(table, {})
    assert names in str(error.value)
    assert "abcdefgh" not in str(error.value)


def test_the_variable_goes_before_the_files_secret() -> None:
    other = "whsec_" + base64.b64encode(b"another one, from the environment").decode()
    settings = read({"url": "https://ci.example/", "secret": SECRET}, {"MOORAGE_WEBHOOK_SECRET": other})
    assert settings.secret.get_secret_value() == other
    assert other not in repr(settings)
