"""The same over real stores and the real ``direct`` assistant, both databases (RUN-1, 2, 4, 5; C35, C36)."""

import json
from collections.abc import AsyncIterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk import get_client
from support.http import serving
from support.routes import operations, text_of
from support.sql_gateway import SqlGateway

from moorage_api.app import create_app

SECRET = "s3cr3t-value-of-alice"
LEGACY = {"auth_token": SECRET, "keep": 1}


@pytest.fixture
def gateway(tmp_path: Path, store_url: str) -> SqlGateway:
    return SqlGateway(tmp_path, store_url)


@pytest.fixture
async def http(gateway: SqlGateway) -> AsyncIterator[httpx.AsyncClient]:
    async with (
        serving(create_app(gateway.open)) as url,
        httpx.AsyncClient(base_url=url, timeout=30) as client,
    ):
        client.headers["X-Api-Key"] = await gateway.issue("alice", "user")
        yield client


def calling(text: str) -> Any:
    calls = {"tool_calls": [{"name": "say", "args": {"text": text}}]}
    return {"messages": [{"role": "user", "content": json.dumps(calls)}]}


@pytest.mark.req("RUN-5", "RUN-6")
async def test_the_public_client_runs_a_tool_and_reads_it_back(
    http: httpx.AsyncClient, gateway: SqlGateway
) -> None:
    key = http.headers["X-Api-Key"]
    async with get_client(url=f"{http.base_url}/api", api_key=key) as client:
        thread = (await client.threads.create(metadata={"topic": "x"}))["thread_id"]
        values: Any = await client.runs.wait(thread, "direct", input=calling("hello"))
        assert "said hello" in json.dumps(values["messages"][1:])
        events = [
            part.event
            async for part in client.runs.stream(
                thread, "direct", input=calling("again"), stream_mode=["values", "updates", "messages-tuple"]
            )
        ]
        assert (events[0], events[-1]) == ("metadata", "end")
        assert {"values", "updates", "messages"} <= set(events)
        state: Any = await client.threads.get_state(thread)
        assert "said again" in json.dumps(state["values"])
        history = await client.threads.get_history(thread, limit=50)
        assert len(history) > 2
        first = history[-1]["checkpoint"]
        assert (await client.threads.get_state(thread, checkpoint=first))["checkpoint"] == first
        assert [one["status"] for one in await client.runs.list(thread)] == ["success", "success"]
        assert (await client.threads.search(metadata={"topic": "x"}))[0]["thread_id"] == thread
        run = (await client.runs.list(thread))[0]["run_id"]
        page = await http.get(f"/api/threads/{thread}/runs/{run}/events?limit=2")
        rest = await http.get(
            f"/api/threads/{thread}/runs/{run}/events",
            params={"after_seq": page.headers["X-Pagination-Next"]},
        )
        seqs = [row["seq"] for row in page.json() + rest.json()]
        assert seqs == sorted(set(seqs))
        tools = await http.get(f"/api/threads/{thread}/runs/{run}/events?event_types=tool_call,tool_result")
        assert [row["event_type"] for row in tools.json()] == ["tool_call", "tool_result"]
        assert (await http.get(f"/api/threads/{thread}/mcp-tasks")).json() == {
            "items": [],
            "next_cursor": None,
        }
        await client.threads.delete(thread)
        assert SECRET not in str(gateway.dump())


@pytest.mark.req("RUN-2")
async def test_a_refused_run_changes_no_row_of_any_table(
    http: httpx.AsyncClient, gateway: SqlGateway
) -> None:
    await http.post("/api/threads", json={"thread_id": "t"})
    await http.post("/api/threads/t/runs/wait", json={"assistant_id": "direct", "input": calling("hi")})
    kept = gateway.dump()
    body = {"assistant_id": "direct", "input": calling("hi"), "metadata": {"auth_token": SECRET}}
    values: Sequence[Any] = (SECRET, None, "", False, [SECRET], {"a": SECRET})
    for path in ("/api/threads/t/runs", "/api/threads/other/runs", "/api/runs"):
        for end, value in product(("", "/wait", "/stream"), values):
            for more in ({}, {"after_seconds": 60}, {"if_not_exists": "create"}):
                sent = {**body, "metadata": {"auth_token": value}, **more}
                answer = await http.post(path + end, json=sent)
                expected = 404 if "other" in path and "if_not_exists" not in more else 422
                assert answer.status_code == expected, answer.text
                assert SECRET not in answer.text
    batch = [{"assistant_id": "direct", "input": calling("hi")}, body]
    assert (await http.post("/api/runs/batch", json=batch)).status_code == 422
    assert gateway.dump() == kept


@pytest.mark.req("RUN-1")
async def test_secrets_are_in_no_row_and_no_answer(http: httpx.AsyncClient, gateway: SqlGateway) -> None:
    await http.post("/api/threads", json={"thread_id": "t"})
    context = {"secrets": {"jobs": SECRET, "deeper": {"a": SECRET}}}
    for fields in ({"config": {"context": context}}, {"context": context}):
        body = {"assistant_id": "direct", "input": calling("hi"), **fields}
        modes = ["values", "updates", "messages-tuple", "debug", "events", "custom", "tasks", "checkpoints"]
        for end, more in (("/wait", {}), ("/stream", {"stream_mode": modes})):
            answer = await http.post(f"/api/threads/t/runs{end}", json={**body, **more})
            assert answer.status_code == 200
            assert SECRET not in answer.text
    for path in ("/api/threads/t/runs", "/api/threads/t/state", "/api/threads/t/history?limit=100"):
        assert SECRET not in (await http.get(path)).text
    assert SECRET not in str(gateway.dump())


def with_metadata(text: str) -> bool:
    """What the legacy rows have beside the key is shown."""
    return '"keep":1' in text


@pytest.mark.req("RUN-4")
async def test_legacy_rows_are_hidden_everywhere_and_stay_as_they_are(
    http: httpx.AsyncClient, gateway: SqlGateway
) -> None:
    await http.post("/api/threads", json={"thread_id": "old"})
    run = await http.post("/api/threads/old/runs", json={"assistant_id": "direct", "input": calling("hi")})
    run_id = run.json()["run_id"]
    await http.get(f"/api/threads/old/runs/{run_id}/join")
    legacy = json.dumps(LEGACY)
    gateway.execute("UPDATE threads SET metadata = ?", legacy)
    gateway.execute("UPDATE events SET metadata = ?", legacy)
    kwargs = json.dumps({"config": {"metadata": LEGACY, "configurable": LEGACY}, "metadata": LEGACY})
    gateway.execute("UPDATE runs SET metadata = ?, kwargs = ?", legacy, kwargs)
    kept = gateway.dump()
    checkpoint = (await http.get("/api/threads/old/state")).json()["checkpoint"]["checkpoint_id"]
    shown = 0
    for one in await operations(http):
        reads = one.method == "get" or one.name in ("search_threads", "post_history", "post_state_at")
        if not reads or "not supported" in one.definition["tags"]:
            continue
        path = one.at(thread_id="old", run_id=run_id, checkpoint_id=checkpoint, assistant_id="direct")
        sent = {"checkpoint": {"checkpoint_id": checkpoint}} if one.name == "post_state_at" else {}
        body: Any = {"json": sent}
        text = await text_of(http, one.method, path, enough=with_metadata, **(body if one.has_body else {}))
        assert SECRET not in text, one.name
        shown += with_metadata(text)
    assert shown >= 5
    assert gateway.dump() == kept
    await http.patch("/api/threads/old", json={"metadata": {"more": 2}})
    assert (await http.get("/api/threads/old")).json()["metadata"] == {"keep": 1, "more": 2}
    assert SECRET in str(gateway.dump()["threads"])


@pytest.mark.req("API-2")
async def test_keys_of_a_real_store(http: httpx.AsyncClient, gateway: SqlGateway) -> None:
    key = http.headers["X-Api-Key"]
    assert (await http.get("/api/mcp/tools")).status_code == 200
    assert key not in str(gateway.dump(without=()))
    record = (await gateway.store.keys.list())[0]
    await gateway.store.keys.revoke(record.key_id)
    assert (await http.get("/api/mcp/tools")).status_code == 401


@pytest.mark.req("API-1", "RUN-5")
async def test_odd_values_are_told_apart_from_faults_of_the_gateway(http: httpx.AsyncClient) -> None:
    await http.post("/api/threads", json={"thread_id": "t"})
    for values in ([{"x": SECRET}], {"messages": 5}, {"messages": [{"role": SECRET, "content": "a"}]}):
        answer = await http.post("/api/threads/t/state", json={"values": values})
        assert answer.status_code == 422, answer.text
        assert SECRET not in answer.text
    body = {"values": {"messages": []}, "as_node": "nowhere"}
    assert (await http.post("/api/threads/t/state", json=body)).status_code == 422
    assert (await http.get("/api/threads/t/mcp-tasks?cursor=invented")).status_code == 422
    metadata = {"nul": "a\u0000b", "big": 10**30, "deep": {"a": [None, True, 1.5]}}
    made = await http.post("/api/threads", json={"metadata": metadata})
    assert (await http.get(f"/api/threads/{made.json()['thread_id']}")).json()["metadata"] == metadata
    found = await http.post("/api/threads/search", json={"metadata": {"nul": "a\u0000b"}})
    assert [one["thread_id"] for one in found.json()] == [made.json()["thread_id"]]


@pytest.mark.req("API-1", "RUN-5")
async def test_ids_that_no_database_takes_name_nothing(http: httpx.AsyncClient) -> None:
    await http.post("/api/threads", json={"thread_id": "t"})
    await http.post("/api/threads/t/runs/wait", json={"assistant_id": "direct", "input": calling("hi")})
    headers = {"Content-Type": "application/json"}
    for odd in ("\x00", "a\x00b"):
        quoted = json.dumps(odd)
        bodies = {
            "/api/threads/t/runs": f'{{"assistant_id": "direct", "checkpoint_id": {quoted}}}',
            "/api/threads/t/state": f'{{"values": {{}}, "checkpoint_id": {quoted}}}',
            "/api/threads/t/state/checkpoint": f'{{"checkpoint": {{"checkpoint_id": {quoted}}}}}',
        }
        for path, content in bodies.items():
            answer = await http.post(path, content=content, headers=headers)
            assert answer.status_code == 404, (path, answer.text)
        content = f'{{"before": {quoted}}}'
        answer = await http.post("/api/threads/t/history", content=content, headers=headers)
        assert answer.status_code == 200, answer.text
    for path in ("state/%00", "state/a%00b", "runs/%00", "mcp-tasks/%00", "runs/a%00b/stream"):
        assert (await http.get(f"/api/threads/t/{path}")).status_code == 404, path


MISFITS: dict[str, Any] = {
    "no message": {"type": "remove", "id": "x"},
    "odd id": {"role": "user", "content": "x", "id": {"a": 1}},
    "removes what is not there": {"role": "remove", "content": "", "id": "nobody"},
}


@pytest.mark.req("RUN-5")
@pytest.mark.parametrize("misfit", MISFITS)
async def test_a_message_that_does_not_fit_spoils_its_run_and_not_the_thread(
    http: httpx.AsyncClient, misfit: str
) -> None:
    await http.post("/api/threads", json={"thread_id": "t"})
    body = {"assistant_id": "direct", "input": calling("hi")}
    await http.post("/api/threads/t/runs/wait", json=body)
    spoiled = {"assistant_id": "direct", "input": {"messages": [MISFITS[misfit]]}}
    answer = await http.post("/api/threads/t/runs/wait", json=spoiled)
    assert "__error__" in answer.json()
    for path in ("", "/state", "/history?limit=100"):
        shown = await http.get(f"/api/threads/t{path}")
        assert shown.status_code == 200, shown.text
        assert "said hi" in shown.text
    answer = await http.post("/api/threads/t/runs/wait", json=body)
    assert "said hi" in json.dumps(answer.json()["messages"][-1])
    history = (await http.get("/api/threads/t/history?limit=100")).json()
    ids = [one["checkpoint"]["checkpoint_id"] for one in history]
    assert ids == sorted(set(ids), reverse=True)
    pages: list[str] = []
    while len(pages) < len(ids):
        query = {"limit": 2, "before": pages[-1] if pages else None}
        page = (await http.post("/api/threads/t/history", json=query)).json()
        assert page
        pages += [one["checkpoint"]["checkpoint_id"] for one in page]
    assert pages == ids
