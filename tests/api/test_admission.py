"""``metadata.auth_token`` is refused on every launch route, and only there (RUN-2, C35)."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from support.api_fakes import FakeGateway
from support.http import serving
from support.routes import operations

from moorage_api.app import create_app

pytestmark = pytest.mark.req("RUN-2", "RUN-3")

SECRET = "s3cr3t-value-of-alice"
LAUNCHES = [
    "/api/threads/t/runs",
    "/api/threads/t/runs/wait",
    "/api/threads/t/runs/stream",
    "/api/runs",
    "/api/runs/wait",
    "/api/runs/stream",
    "/api/runs/batch",
]


@pytest.fixture
def gateway() -> FakeGateway:
    return FakeGateway()


@pytest.fixture
async def http(gateway: FakeGateway) -> AsyncIterator[httpx.AsyncClient]:
    async with serving(create_app(gateway.open)) as url, httpx.AsyncClient(base_url=url) as client:
        client.headers["X-Api-Key"] = await gateway.store.keys.issue("alice", "user")
        await client.post("/api/threads", json={"thread_id": "t"})
        yield client


def body(path: str, **fields: Any) -> Any:
    one = {"assistant_id": "echo", "input": {"messages": [{"role": "user", "content": "hi"}]}, **fields}
    return [{"assistant_id": "echo"}, one] if path.endswith("batch") else one


@pytest.mark.parametrize("path", LAUNCHES)
async def test_the_legacy_key_is_refused_before_anything_exists(
    http: httpx.AsyncClient, gateway: FakeGateway, path: str
) -> None:
    kept = gateway.store.dump()
    for value in (SECRET, None, "", {"a": SECRET}, [SECRET]):
        for more in (
            {},
            {"after_seconds": 60},
            {"if_not_exists": "create"},
            {"multitask_strategy": "enqueue"},
        ):
            answer = await http.post(path, json=body(path, metadata={"auth_token": value, "keep": 1}, **more))
            assert answer.status_code == 422, answer.text
            assert answer.headers["content-type"] == "application/problem+json"
            assert "config.context.secrets" in answer.json()["detail"]
            assert SECRET not in answer.text
    assert gateway.store.dump() == kept
    assert not gateway.assistant.seen


@pytest.mark.parametrize("path", LAUNCHES)
@pytest.mark.parametrize("metadata", [[SECRET], SECRET, 7, True], ids=["list", "string", "number", "bool"])
async def test_metadata_that_is_no_object_is_422(
    http: httpx.AsyncClient, gateway: FakeGateway, path: str, metadata: Any
) -> None:
    kept = gateway.store.dump()
    answer = await http.post(path, json=body(path, metadata=metadata))
    assert answer.status_code == 422
    assert SECRET not in answer.text
    assert gateway.store.dump() == kept


async def test_the_key_elsewhere_is_dropped_where_it_would_be_stored_and_kept_where_it_is_the_clients(
    http: httpx.AsyncClient, gateway: FakeGateway
) -> None:
    sent = body(
        "",
        metadata={"Auth_Token": "mine", "token": "mine", "nested": {"auth_token": "mine"}},
        config={"metadata": {"auth_token": SECRET, "a": 1}, "configurable": {"auth_token": SECRET}},
    )
    run = (await http.post("/api/threads/t/runs", json=sent)).raise_for_status()
    assert (await http.get(f"/api/threads/t/runs/{run.json()['run_id']}/join")).status_code == 200
    shown = (await http.get(f"/api/threads/t/runs/{run.json()['run_id']}")).json()
    assert shown["metadata"] == sent["metadata"]
    assert shown["kwargs"]["config"]["metadata"] == {"a": 1}
    assert SECRET not in str(shown)
    assert SECRET not in gateway.store.dump()


async def test_threads_keep_their_own_contract(http: httpx.AsyncClient) -> None:
    created = await http.post("/api/threads", json={"metadata": {"auth_token": SECRET, "a": 1}})
    assert created.status_code == 200
    assert created.json()["metadata"] == {"a": 1}
    path = f"/api/threads/{created.json()['thread_id']}"
    assert (await http.patch(path, json={"metadata": {"auth_token": SECRET}})).status_code == 200
    assert SECRET not in (await http.get(path)).text


@pytest.mark.req("RUN-1")
async def test_secrets_reach_the_run_and_nothing_that_is_kept_or_returned(
    http: httpx.AsyncClient, gateway: FakeGateway
) -> None:
    secrets = {"jobs": SECRET, "nested": {"deeper": SECRET}}
    for fields in ({"config": {"context": {"secrets": secrets}}}, {"context": {"secrets": secrets}}):
        for path in LAUNCHES:
            answer = await http.post(path, json=body(path, **fields, multitask_strategy="enqueue"))
            assert answer.status_code == 200
            assert SECRET not in answer.text
    seen = [run.call.secrets for run in gateway.assistant.seen]
    assert secrets in seen
    assert SECRET not in gateway.store.dump()
    assert SECRET not in (await http.get("/api/threads/t/runs?limit=100")).text


@pytest.mark.req("RUN-9")
async def test_no_body_says_who_calls(http: httpx.AsyncClient, gateway: FakeGateway) -> None:
    claims = {"user_id": "root", "roles": ["admin"], "principal": {"user_id": "root"}, "__internal": True}
    sent = body(
        "",
        context={**claims, "topic": "x"},
        config={"configurable": {**claims, "langgraph_auth_user": claims}, "context": claims, **claims},
        metadata={"user_id": "root"},
        **claims,
    )
    await http.post("/api/threads/t/runs/wait", json=sent)
    seen = gateway.assistant.seen[-1]
    assert (seen.call.principal.user_id, seen.call.principal.roles) == ("alice", frozenset({"user"}))
    assert not seen.internal
    assert "root" not in repr(seen.config)


async def test_a_missing_assistant_or_thread_leaves_nothing_behind(
    http: httpx.AsyncClient, gateway: FakeGateway
) -> None:
    kept = gateway.store.dump()
    for path in LAUNCHES[:6]:
        assert (await http.post(path, json=body(path, assistant_id="nobody"))).status_code == 404
    assert (await http.post("/api/threads/other/runs", json=body(""))).status_code == 404
    assert gateway.store.dump() == kept


async def test_no_launch_route_is_forgotten_here(http: httpx.AsyncClient) -> None:
    found = {one.at(thread_id="t") for one in await operations(http) if "/RunCreate" in str(one.definition)}
    assert found == set(LAUNCHES)


async def test_what_would_launch_later_is_not_there_at_all(
    http: httpx.AsyncClient, gateway: FakeGateway
) -> None:
    kept = gateway.store.dump()
    sent = body("", metadata={"auth_token": SECRET}, schedule="* * * * *")
    for path in ("/api/runs/crons", "/api/threads/t/runs/crons"):
        answer = await http.post(path, json=sent)
        assert answer.status_code == 501
        assert SECRET not in answer.text
    assert gateway.store.dump() == kept
