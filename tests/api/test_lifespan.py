"""Starting and stopping, also when it goes wrong halfway (C74)."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from litestar.testing import AsyncTestClient, TestClient
from support.api_fakes import FakeGateway
from support.http import serving

from moorage.contract import ConfigError, StoreUnavailable
from moorage_api.app import create_app
from moorage_api.server import GatewayServer, listen
from moorage_api.settings import ApiSettings

pytestmark = pytest.mark.req("API-1", "TASK-11")

LOCAL = ApiSettings(authentication=False)


def _tasks() -> set[asyncio.Task[Any]]:
    return {task for task in asyncio.all_tasks() if task is not asyncio.current_task()}


async def test_twenty_starts_and_stops_leave_nothing(recwarn: pytest.WarningsRecorder) -> None:
    asyncio.get_running_loop().set_debug(True)
    gateway = FakeGateway()
    app = create_app(gateway.open, LOCAL)
    before = _tasks()
    for _ in range(20):
        async with serving(app) as url, httpx.AsyncClient(base_url=url) as http:
            assert (await http.post("/api/runs", json={"assistant_id": "echo"})).status_code == 200
    assert (gateway.opened, gateway.closed) == (20, 20)
    await asyncio.sleep(0)
    assert _tasks() - before == set()
    assert [str(one.message) for one in recwarn] == []


async def test_a_start_that_fails_halfway_is_rolled_back_and_says_why() -> None:
    events: list[str] = []

    @asynccontextmanager
    async def half() -> AsyncIterator[Any]:
        events.append("opened")
        task = asyncio.create_task(asyncio.sleep(3600))
        try:
            raise StoreUnavailable("the database is down")
            yield
        finally:
            task.cancel()
            events.append("closed")

    before = _tasks()
    with pytest.raises(StoreUnavailable, match="the database is down"):
        async with serving(create_app(half)):
            pytest.fail("it must not start")
    await asyncio.sleep(0)
    assert events == ["opened", "closed"]
    assert _tasks() - before == set()


async def test_a_plugin_authenticator_that_cannot_be_built_ends_the_start_cleanly() -> None:
    def broken(_: Any) -> Any:
        raise ConfigError("no issuer is set", where="plugins.oidc")

    gateway = FakeGateway()
    one = type("C", (), {"plugin": "oidc", "spec": type("S", (), {"build": staticmethod(broken)})})
    gateway.host = type("H", (), {"authenticators": staticmethod(lambda: [one])})
    with pytest.raises(ConfigError, match="no issuer"):
        async with serving(create_app(gateway.open)):
            pytest.fail("it must not start")
    assert (gateway.opened, gateway.closed) == (1, 1)


async def test_a_signal_in_the_middle_of_a_start_gives_up_and_closes() -> None:
    started, closed = asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def slow() -> AsyncIterator[Any]:
        try:
            started.set()
            await asyncio.sleep(3600)
            yield
        finally:
            closed.set()

    server = GatewayServer(create_app(slow), ApiSettings(), signals=())
    with listen("127.0.0.1", 0) as sock:
        task = asyncio.create_task(server.serve([sock]))
        await started.wait()
        server.handle_exit(15, None)
        with pytest.raises(asyncio.CancelledError):
            await task
    assert closed.is_set()


async def test_open_streams_do_not_hold_up_the_stop() -> None:
    gateway = FakeGateway()
    app = create_app(gateway.open, ApiSettings(authentication=False, shutdown_grace_seconds=30))
    body = {"assistant_id": "echo", "input": {"messages": [{"role": "user", "content": "wait"}]}}
    started = asyncio.get_running_loop().time()
    async with httpx.AsyncClient() as http:
        async with serving(app) as url:
            request = http.build_request("POST", f"{url}/api/runs/stream", json=body)
            stream = await http.send(request, stream=True)
            await gateway.assistant.waiting.wait()
        lines = [line async for line in stream.aiter_lines()]
    assert asyncio.get_running_loop().time() - started < 15
    assert not [line for line in lines if line in ("event: end", "event: error")], "the run did not end"
    assert gateway.closed == 1


async def test_a_silent_stream_shows_signs_of_life() -> None:
    gateway = FakeGateway()
    app = create_app(gateway.open, ApiSettings(authentication=False, heartbeat_seconds=0.05))
    body = {"assistant_id": "echo", "input": {"messages": [{"role": "user", "content": "wait"}]}}
    async with serving(app) as url, httpx.AsyncClient(base_url=url) as http:
        async with http.stream("POST", "/api/runs/stream", json=body) as stream:
            async for line in stream.aiter_lines():
                if line == ": alive":
                    break
        async with http.stream("POST", "/api/runs/wait", json=body) as waiting:
            chunks = waiting.aiter_bytes()
            assert await anext(chunks) == b"\n"
            gateway.assistant.release.set()
            rest = b"".join([chunk async for chunk in chunks])
        assert len(json.loads(rest)["messages"]) == 2


def test_a_synchronous_client_works_too() -> None:
    with TestClient(create_app(FakeGateway().open, LOCAL), base_url="http://127.0.0.1") as client:
        assert client.get("/readyz").status_code == 200
        assert client.post("/api/runs/wait", json={"assistant_id": "echo"}).status_code == 200


async def test_an_asynchronous_client_works_too() -> None:
    app = create_app(FakeGateway().open, LOCAL)
    async with AsyncTestClient(app, base_url="http://127.0.0.1") as client:
        assert (await client.post("/api/runs/wait", json={"assistant_id": "echo"})).status_code == 200
