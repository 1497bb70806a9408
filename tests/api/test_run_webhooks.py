"""A run's webhook is told of its end, and reaches nothing that is forbidden (RUN-5, RUN-1)."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import Any

import httpx
import pytest
from litestar import Litestar, Request, post
from litestar.response import Response
from support.api_fakes import FakeGateway
from support.http import serving

from moorage_api import run_webhooks
from moorage_api.app import create_app
from moorage_api.run_webhooks import is_forbidden
from moorage_api.settings import ApiSettings
from moorage_api.wiring import KEY, Runtime

pytestmark = pytest.mark.req("RUN-5")

LOCAL = ApiSettings(authentication=False)
SECRET = "s3cr3t-value-of-alice"


class Receiver:
    """Answers from a script of statuses, then 204; keeps what it gets."""

    def __init__(self, *script: int) -> None:
        self.script = list(script)
        self.got: asyncio.Queue[Any] = asyncio.Queue()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        @post("/told")
        async def told(request: Request[Any, Any, Any]) -> Response[None]:
            await self.got.put((dict(request.headers), await request.json()))
            status = self.script.pop(0) if self.script else 204
            headers = {"Location": "/told"} if status == 307 else {}
            return Response(None, status_code=status, headers=headers)

        app = Litestar([told], openapi_config=None, logging_config=None)
        app.state[KEY] = Runtime(LOCAL)
        async with serving(app) as url:
            yield f"{url}/told"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_webhooks, "PAUSES_SECONDS", (0.01, 0.01))


@asynccontextmanager
async def client_of(gateway: FakeGateway) -> AsyncIterator[httpx.AsyncClient]:
    async with serving(create_app(gateway.open, LOCAL)) as url, httpx.AsyncClient(base_url=url) as http:
        yield http


async def _run(http: httpx.AsyncClient, webhook: str, **fields: Any) -> httpx.Response:
    body = {
        "assistant_id": "echo",
        "input": {"messages": [{"role": "user", "content": fields.pop("text", "hi")}]},
        "webhook": webhook,
        "context": {"secrets": {"jobs": SECRET}},
        **fields,
    }
    return await http.post("/api/runs", json=body)


async def test_it_gets_the_run_and_its_values_and_no_secret() -> None:
    receiver, gateway = Receiver(), FakeGateway()
    async with receiver.listening() as webhook, client_of(gateway) as http:
        run = (await _run(http, webhook, metadata={"a": 1})).json()
        async with asyncio.timeout(10):
            headers, body = await receiver.got.get()
    assert (body["run_id"], body["status"], body["metadata"]) == (run["run_id"], "success", {"a": 1})
    assert [message["content"] for message in body["values"]["messages"]] == ["hi", "hi"]
    assert body["webhook_sent_at"]
    assert SECRET not in str((headers, body))
    assert receiver.got.empty()


async def test_a_failed_run_is_told_too_and_a_busy_receiver_is_asked_again() -> None:
    receiver, gateway = Receiver(503, 500), FakeGateway()
    async with receiver.listening() as webhook, client_of(gateway) as http:
        await _run(http, webhook, text="fail")
        async with asyncio.timeout(10):
            told = [(await receiver.got.get())[1] for _ in range(3)]
    assert [one["status"] for one in told] == ["error"] * 3


async def test_it_gives_up_follows_no_redirect_and_logs_no_address(caplog: pytest.LogCaptureFixture) -> None:
    receiver, gateway = Receiver(307, 307, 307, 307), FakeGateway()
    async with receiver.listening() as webhook, client_of(gateway) as http:
        await _run(http, f"{webhook}?token={SECRET}")
        async with asyncio.timeout(10):
            while not [one for one in caplog.records if "was not told" in one.getMessage()]:
                await asyncio.sleep(0.02)
    assert receiver.got.qsize() == 3
    ours = [one.getMessage() for one in caplog.records if one.name.startswith("moorage")]
    assert SECRET not in str(ours)


@pytest.mark.parametrize(
    "webhook",
    [
        "http://169.254.169.254/latest",
        "http://[::ffff:169.254.169.254]/",
        "http://[fe80::1]/",
        "http://0.0.0.0/",
        "http://[64:ff9b::a9fe:a9fe]/",
        "http://[2002:a9fe:a9fe::]/",
        "http://[::169.254.169.254]/",
        "http://100.100.100.200/",
    ],
)
async def test_metadata_and_link_local_addresses_are_never_asked(
    webhook: str, caplog: pytest.LogCaptureFixture
) -> None:
    gateway = FakeGateway()
    async with serving(create_app(gateway.open, LOCAL)) as url, httpx.AsyncClient(base_url=url) as http:
        assert (await _run(http, webhook)).status_code == 200
        async with asyncio.timeout(10):
            while not [one for one in caplog.records if "link-local or metadata" in one.getMessage()]:
                await asyncio.sleep(0.02)


@pytest.mark.parametrize(
    "webhook",
    [
        *("ftp://a/", "no url", "http://user:pw@a/", 7, ["http://a/"], "http://[::1", "http://a:99999/"),
        *(
            "http://a:x/",
            "http://a\x00/",
            "http://a b/",
            "http://../",
            f"http://{'a' * 300}/",
            "http://\ud800/",
        ),
    ],
    ids=ascii,
)
async def test_what_is_no_address_for_a_webhook_is_422(webhook: Any) -> None:
    gateway = FakeGateway()
    async with serving(create_app(gateway.open, LOCAL)) as url, httpx.AsyncClient(base_url=url) as http:
        content = json.dumps({"assistant_id": "echo", "webhook": webhook})  # httpx sends no lone surrogate
        headers = {"Content-Type": "application/json"}
        assert (await http.post("/api/runs", content=content, headers=headers)).status_code == 422
    assert not gateway.store.runs.rows


def test_public_and_private_addresses_are_allowed() -> None:
    assert not is_forbidden(ip_address("203.0.113.7"))
    assert not is_forbidden(ip_address("10.0.0.7"))
    assert not is_forbidden(ip_address("127.0.0.1"))
    assert not is_forbidden(ip_address("::1"))
    assert not is_forbidden(ip_address("64:ff9b::c000:201"))
    assert is_forbidden(ip_address("fd00:ec2::254"))
