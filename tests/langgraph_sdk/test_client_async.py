"""The public LangGraph client, unchanged, over real HTTP (RUN-5)."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import httpx
import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import APIStatusError
from langgraph_sdk.schema import RunCreate
from support.api_fakes import FakeGateway
from support.http import serving

from moorage_api.app import create_app

pytestmark = pytest.mark.req("RUN-5")


@pytest.fixture
def gateway() -> FakeGateway:
    return FakeGateway()


@pytest.fixture
async def client(gateway: FakeGateway) -> AsyncIterator[LangGraphClient]:
    key = await gateway.store.keys.issue("alice", "user")
    async with serving(create_app(gateway.open)) as url, get_client(url=f"{url}/api", api_key=key) as made:
        yield made


def said(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


def texts(values: Any) -> list[str]:
    return [message["content"] for message in values["messages"]]


async def test_assistants(client: LangGraphClient) -> None:
    found = await client.assistants.search()
    assert [one["assistant_id"] for one in found] == ["echo"]
    assert await client.assistants.search(name="nothing") == []
    page = await client.assistants.search(limit=1, response_format="object")
    assert page["next"] is None
    assert await client.assistants.count() == 1
    assert (await client.assistants.get("echo"))["graph_id"] == "echo"
    with pytest.raises(APIStatusError) as caught:
        await client.assistants.get("nobody")
    assert caught.value.status_code == 404


async def test_threads(client: LangGraphClient) -> None:
    thread = await client.threads.create(metadata={"topic": "reports"}, graph_id="echo")
    named = await client.threads.create(thread_id="my-thread", if_exists="do_nothing")
    assert named["thread_id"] == "my-thread"
    assert (await client.threads.create(thread_id="my-thread", if_exists="do_nothing"))["status"] == "idle"
    with pytest.raises(APIStatusError) as caught:
        await client.threads.create(thread_id="my-thread")
    assert caught.value.status_code == 409
    changed = await client.threads.update(thread["thread_id"], metadata={"more": 1})
    assert changed["metadata"] == {"topic": "reports", "graph_id": "echo", "more": 1}
    found = await client.threads.search(metadata={"topic": "reports"})
    assert [one["thread_id"] for one in found] == [thread["thread_id"]]
    assert len(await client.threads.search(limit=1)) == 1
    assert [one["thread_id"] for one in await client.threads.search(ids=["my-thread"])] == ["my-thread"]
    assert await client.threads.count() == 2
    await client.threads.delete("my-thread")
    with pytest.raises(APIStatusError):
        await client.threads.get("my-thread")


async def test_state_and_history(client: LangGraphClient) -> None:
    thread_id = (await client.threads.create())["thread_id"]
    empty = await client.threads.get_state(thread_id)
    assert empty["values"] == {}
    await client.runs.wait(thread_id, "echo", input=said("one"))
    await client.runs.wait(thread_id, "echo", input=said("two"))
    state = await client.threads.get_state(thread_id)
    assert texts(state["values"]) == ["one", "one", "two", "two"]
    assert texts((await client.threads.get(thread_id))["values"]) == ["one", "one", "two", "two"]
    history = await client.threads.get_history(thread_id)
    assert [one["checkpoint"]["checkpoint_id"] for one in history] == ["c2", "c1"]
    older = await client.threads.get_history(thread_id, limit=1, before=history[0]["checkpoint"])
    assert [one["checkpoint"]["checkpoint_id"] for one in older] == ["c1"]
    first = await client.threads.get_state(thread_id, checkpoint_id="c1")
    assert texts(first["values"]) == ["one", "one"]
    assert await client.threads.get_state(thread_id, checkpoint=first["checkpoint"]) == first
    written = await client.threads.update_state(thread_id, {"messages": []}, as_node="echo")
    assert written["checkpoint"]["checkpoint_id"] == "c3"


async def test_runs(client: LangGraphClient) -> None:
    thread_id = (await client.threads.create())["thread_id"]
    created: list[Any] = []
    run = await client.runs.create(
        thread_id, "echo", input=said("hi"), metadata={"a": 1}, on_run_created=created.append
    )
    assert created == [{"run_id": run["run_id"], "thread_id": thread_id}]
    assert texts(await client.runs.join(thread_id, run["run_id"])) == ["hi", "hi"]
    shown = await client.runs.get(thread_id, run["run_id"])
    assert (shown["status"], shown["metadata"]) == ("success", {"a": 1})
    assert [one["run_id"] for one in await client.runs.list(thread_id, status="success")] == [run["run_id"]]
    assert await client.runs.list(thread_id, status="error") == []
    await client.runs.delete(thread_id, run["run_id"])
    assert await client.runs.list(thread_id) == []


async def test_wait_answers_the_values_or_raises_what_went_wrong(client: LangGraphClient) -> None:
    thread_id = (await client.threads.create())["thread_id"]
    created: list[Any] = []
    values = await client.runs.wait(thread_id, "echo", input=said("hi"), on_run_created=created.append)
    assert texts(values) == ["hi", "hi"]
    assert created[0]["thread_id"] == thread_id
    with pytest.raises(Exception, match="no idea"):
        await client.runs.wait(thread_id, "echo", input=said("fail"))
    answer = await client.runs.wait(thread_id, "echo", input=said("fail"), raise_error=False)
    assert "__error__" in answer
    new = await client.runs.wait("made-now", "echo", input=said("hi"), if_not_exists="create")
    assert texts(new) == ["hi", "hi"]
    with pytest.raises(httpx.HTTPStatusError) as caught:
        await client.runs.wait("not-made", "echo", input=said("hi"))
    assert caught.value.response.status_code == 404


async def test_stream(client: LangGraphClient) -> None:
    thread_id = (await client.threads.create())["thread_id"]
    parts = [
        part
        async for part in client.runs.stream(
            thread_id, "echo", input=said("hi"), stream_mode=["values", "updates", "custom"]
        )
    ]
    assert [part.event for part in parts] == ["metadata", "values", "updates", "custom", "values", "end"]
    assert texts(parts[-2].data) == ["hi", "hi"]
    only = [part.event async for part in client.runs.stream(thread_id, "echo", input=said("hi"))]
    assert set(only) == {"metadata", "values", "end"}
    failed = [part async for part in client.runs.stream(thread_id, "echo", input=said("fail"))]
    assert failed[-1].event == "error"


async def test_a_stream_is_resumed_after_an_id(client: LangGraphClient) -> None:
    thread_id = (await client.threads.create())["thread_id"]
    run = await client.runs.create(thread_id, "echo", input=said("hi"))
    await client.runs.join(thread_id, run["run_id"])
    whole = [part async for part in client.runs.join_stream(thread_id, run["run_id"])]
    assert all(part.id for part in whole)
    rest = [
        part async for part in client.runs.join_stream(thread_id, run["run_id"], last_event_id=whole[1].id)
    ]
    assert rest == whole[2:]
    values = [
        part.event async for part in client.runs.join_stream(thread_id, run["run_id"], stream_mode="values")
    ]
    assert "updates" not in values


@pytest.mark.req("RUN-8")
async def test_a_stream_resumed_at_an_unknown_id_admits_the_gap(client: LangGraphClient) -> None:
    thread_id = (await client.threads.create())["thread_id"]
    run = await client.runs.create(thread_id, "echo", input=said("hi"))
    await client.runs.join(thread_id, run["run_id"])
    parts = [part async for part in client.runs.join_stream(thread_id, run["run_id"], last_event_id="999999")]
    assert parts[0].event == "gap"
    assert parts[-1].event == "end"


async def test_cancel(client: LangGraphClient, gateway: FakeGateway) -> None:
    thread_id = (await client.threads.create())["thread_id"]
    run = await client.runs.create(thread_id, "echo", input=said("wait"))
    await gateway.assistant.waiting.wait()
    with pytest.raises(APIStatusError) as caught:
        await client.runs.create(thread_id, "echo", input=said("me too"))
    assert caught.value.status_code == 409
    await client.runs.cancel(thread_id, run["run_id"], wait=True)
    assert gateway.assistant.cancelled.is_set()
    assert (await client.runs.get(thread_id, run["run_id"]))["status"] == "interrupted"
    run = await client.runs.create(thread_id, "echo", input=said("wait"))
    await client.runs.cancel(thread_id, run["run_id"])
    other = await client.runs.create(thread_id, "echo", input=said("wait"))
    await client.runs.cancel_many(thread_id=thread_id, run_ids=[other["run_id"]])
    assert {one["status"] for one in await client.runs.list(thread_id)} == {"interrupted"}


async def test_a_run_that_left_nothing_behind_has_empty_values(
    client: LangGraphClient, gateway: FakeGateway
) -> None:
    thread_id = (await client.threads.create())["thread_id"]
    first = await client.runs.create(thread_id, "echo", input=said("wait"))
    await gateway.assistant.waiting.wait()
    queued = await client.runs.create(thread_id, "echo", input=said("hi"), multitask_strategy="enqueue")
    await client.runs.cancel(thread_id, queued["run_id"], wait=True)
    assert await client.runs.join(thread_id, queued["run_id"]) == {}
    await client.runs.cancel(thread_id, first["run_id"], wait=True)


async def test_a_client_that_leaves_cancels_the_run_where_it_asked_to(
    client: LangGraphClient, gateway: FakeGateway
) -> None:
    thread_id = (await client.threads.create())["thread_id"]

    async def leave(on_disconnect: Any) -> str:
        created: list[Any] = []
        stream = client.runs.stream(
            thread_id,
            "echo",
            input=said("wait"),
            on_disconnect=on_disconnect,
            on_run_created=created.append,
        )
        async for _ in stream:
            if gateway.assistant.waiting.is_set():
                break
        await gateway.assistant.waiting.wait()
        await stream.aclose()  # type: ignore[attr-defined]
        return str(created[0]["run_id"])

    run_id = await leave("cancel")
    async with asyncio.timeout(10):
        await gateway.assistant.cancelled.wait()
    async with asyncio.timeout(10):
        while (await client.runs.get(thread_id, run_id))["status"] != "interrupted":
            await asyncio.sleep(0.02)
    gateway.assistant.waiting.clear()
    run_id = await leave("continue")
    gateway.assistant.release.set()
    assert texts(await client.runs.join(thread_id, run_id)) == ["wait", "wait"]


async def test_stateless_runs(client: LangGraphClient, gateway: FakeGateway) -> None:
    assert texts(await client.runs.wait(None, "echo", input=said("hi"))) == ["hi", "hi"]
    events = [part.event async for part in client.runs.stream(None, "echo", input=said("hi"))]
    assert events[-1] == "end"
    run = await client.runs.create(None, "echo", input=said("hi"))
    assert run["status"] in ("pending", "running", "success")
    payload = cast("RunCreate", {"assistant_id": "echo"})
    batch = await client.runs.create_batch([payload, payload])
    assert len(batch) == 2
    async with asyncio.timeout(10):
        while gateway.store.threads.rows:
            await asyncio.sleep(0.02)


@pytest.mark.req("RUN-1")
async def test_context_on_top_carries_secrets(client: LangGraphClient, gateway: FakeGateway) -> None:
    await client.runs.wait(None, "echo", input=said("hi"), context={"secrets": {"jobs": "s3"}, "topic": "x"})
    assert gateway.assistant.seen[-1].call.secrets == {"jobs": "s3"}


async def test_without_a_key_the_client_is_told(client: LangGraphClient) -> None:
    url = str(client.http.client.base_url)
    async with get_client(url=url, api_key=None) as stranger:
        with pytest.raises(APIStatusError) as caught:
            await stranger.threads.create()
        assert caught.value.status_code == 401
    async with httpx.AsyncClient() as http:
        assert (await http.get(f"{url}assistants/echo")).status_code == 401
