"""Somebody else's thread, run, task and event are nobody's: 404, on every route (API-2)."""

from typing import Any

import httpx
import pytest
from support.api_fakes import FakeGateway
from support.http import serving
from support.routes import Operation, operations

from moorage.contract import NotFound, Page, Principal
from moorage_api.app import create_app
from moorage_api.routes.absent import TAG as ABSENT

pytestmark = pytest.mark.req("API-2", "RUN-5")

BODIES: dict[str, Any] = {
    "create_run": {"assistant_id": "echo"},
    "wait_run": {"assistant_id": "echo"},
    "stream_run": {"assistant_id": "echo"},
    "patch_thread": {"metadata": {"a": 1}},
    "update_state": {"values": {"messages": []}},
    "post_state_at": {"checkpoint": {"checkpoint_id": "c1"}},
    "post_history": {},
    "respond_to_task": {"response": {"ok": True}},
}


class OwnersTasks:
    """Stands in for the task service, whose own test of ownership it is who asks for which task."""

    def __init__(self) -> None:
        self.asked: list[Principal] = []

    async def _refuse(self, principal: Principal, *_: Any, **__: Any) -> Page[Any]:
        self.asked.append(principal)
        raise NotFound("there is no such task")

    get = list = cancel = respond = _refuse


async def test_every_route_with_a_thread_answers_404_to_a_stranger() -> None:
    gateway = FakeGateway()
    gateway.tasks = OwnersTasks()
    async with serving(create_app(gateway.open)) as url, httpx.AsyncClient(base_url=url) as http:
        alice = {"X-Api-Key": await gateway.store.keys.issue("alice", "user")}
        mallory = {"X-Api-Key": await gateway.store.keys.issue("mallory", "user", "admin")}
        thread = (await http.post("/api/threads", json={}, headers=alice)).json()["thread_id"]
        body = {"assistant_id": "echo", "input": {"messages": [{"role": "user", "content": "private"}]}}
        await http.post(f"/api/threads/{thread}/runs/wait", json=body, headers=alice)
        run = (await http.get(f"/api/threads/{thread}/runs", headers=alice)).json()[0]["run_id"]
        kept = gateway.store.dump()
        theirs = [one for one in await operations(http) if "{thread_id}" in one.path]
        assert all(one.definition["tags"] != [ABSENT] for one in theirs)
        assert len(theirs) > 20
        for one in theirs:
            answer = await _call(http, one, thread, run, mallory)
            assert answer.status_code == 404, (one.name, answer.text)
            assert "private" not in answer.text
            unknown = await _call(http, one, "nobodys", "nobodys", mallory)
            assert unknown.status_code == 404, (one.name, unknown.text)
            assert unknown.json() == _renamed(answer.json(), thread, run), one.name
        assert gateway.store.dump() == kept
        assert not gateway.tasks.asked, "an administrator would see the task itself"


async def _call(
    http: httpx.AsyncClient, one: Operation, thread: str, run: str, headers: dict[str, str]
) -> httpx.Response:
    path = one.at(thread_id=thread, run_id=run, checkpoint_id="c1", task_id="t1")
    body = {"json": BODIES[one.name]} if one.has_body else {}
    return await http.request(one.method, path, headers=headers, **body)


def _renamed(document: Any, thread: str, run: str) -> Any:
    detail = document["detail"].replace(thread, "nobodys").replace(run, "nobodys")
    return {**document, "detail": detail}


async def test_a_run_of_another_thread_of_ones_own_is_not_found_either() -> None:
    gateway = FakeGateway()
    async with serving(create_app(gateway.open)) as url, httpx.AsyncClient(base_url=url) as http:
        http.headers["X-Api-Key"] = await gateway.store.keys.issue("alice", "user")
        one, two = [(await http.post("/api/threads", json={})).json()["thread_id"] for _ in range(2)]
        run = (await http.post(f"/api/threads/{one}/runs", json={"assistant_id": "echo"})).json()["run_id"]
        for what in ("", "/join", "/stream", "/events"):
            assert (await http.get(f"/api/threads/{one}/runs/{run}{what}")).status_code == 200
            assert (await http.get(f"/api/threads/{two}/runs/{run}{what}")).status_code == 404


async def test_listings_show_ones_own_only() -> None:
    gateway = FakeGateway()
    async with serving(create_app(gateway.open)) as url, httpx.AsyncClient(base_url=url) as http:
        alice = {"X-Api-Key": await gateway.store.keys.issue("alice", "user")}
        admin = {"X-Api-Key": await gateway.store.keys.issue("root", "admin")}
        thread = (await http.post("/api/threads", json={}, headers=alice)).json()["thread_id"]
        found = (await http.post("/api/threads/search", json={}, headers=alice)).json()
        assert [one["thread_id"] for one in found] == [thread]
        assert (await http.post("/api/threads/search", json={}, headers=admin)).json() == []
        taken = await http.post("/api/threads", json={"thread_id": thread}, headers=admin)
        assert taken.status_code == 409
        body = {"thread_id": thread, "if_exists": "do_nothing"}
        assert (await http.post("/api/threads", json=body, headers=admin)).status_code == 409
        assert (await http.post("/api/threads", json=body, headers=alice)).status_code == 200
