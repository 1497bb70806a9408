"""The table of what the public client can do is true, and complete (RUN-5)."""

import inspect
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient, SyncLangGraphClient, get_sync_client
from support.api_fakes import FakeGateway
from support.http import serving

from moorage_api.app import create_app

pytestmark = pytest.mark.req("RUN-5")

DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "langgraph-compatibility.md"
SAID: dict[str, Any] = {"messages": [{"role": "user", "content": "hi"}]}
PARTS = ("assistants", "threads", "runs", "crons", "store")


def table() -> dict[str, str]:
    rows = re.findall(r"^\| `([\w.]+)` \| (\w+) \|", DOCUMENT.read_text(), flags=re.MULTILINE)
    assert len(rows) == len(dict(rows)), "a method is listed twice"
    return dict(rows)


def methods(client: LangGraphClient | SyncLangGraphClient) -> set[str]:
    return {
        f"{part}.{name}"
        for part in PARTS
        for name, _ in inspect.getmembers(getattr(client, part), callable)
        if not name.startswith("_") and name != "http"
    }


async def drained(stream: AsyncIterator[Any]) -> list[Any]:
    return [part async for part in stream]


async def third_protocol(client: LangGraphClient) -> None:
    async with client.threads.stream("t", assistant_id="echo") as thread:
        await thread.run.start(input=SAID)


Call = Callable[[LangGraphClient, str], Awaitable[Any]]
CALLS: dict[str, Call] = {
    "assistants.get": lambda c, _: c.assistants.get("echo"),
    "assistants.search": lambda c, _: c.assistants.search(),
    "assistants.count": lambda c, _: c.assistants.count(),
    "assistants.create": lambda c, _: c.assistants.create("echo"),
    "assistants.update": lambda c, _: c.assistants.update("echo", name="x"),
    "assistants.delete": lambda c, _: c.assistants.delete("echo"),
    "assistants.get_versions": lambda c, _: c.assistants.get_versions("echo"),
    "assistants.set_latest": lambda c, _: c.assistants.set_latest("echo", 1),
    "assistants.get_graph": lambda c, _: c.assistants.get_graph("echo"),
    "assistants.get_schemas": lambda c, _: c.assistants.get_schemas("echo"),
    "assistants.get_subgraphs": lambda c, _: c.assistants.get_subgraphs("echo", namespace="x"),
    "threads.create": lambda c, _: c.threads.create(),
    "threads.get": lambda c, _: c.threads.get("t"),
    "threads.update": lambda c, _: c.threads.update("t", metadata={"a": 1}),
    "threads.delete": lambda c, _: c.threads.delete("spare"),
    "threads.search": lambda c, _: c.threads.search(),
    "threads.count": lambda c, _: c.threads.count(),
    "threads.get_state": lambda c, _: c.threads.get_state("t"),
    "threads.update_state": lambda c, _: c.threads.update_state("t", {"messages": []}),
    "threads.get_history": lambda c, _: c.threads.get_history("t"),
    "threads.copy": lambda c, _: c.threads.copy("t"),
    "threads.prune": lambda c, _: c.threads.prune(["t"]),
    "threads.join_stream": lambda c, _: _thread_stream(c),
    "threads.stream": lambda c, _: third_protocol(c),
    "runs.create": lambda c, _: c.runs.create("spare", "echo", input=SAID),
    "runs.create_batch": lambda c, _: c.runs.create_batch([cast("Any", {"assistant_id": "echo"})]),
    "runs.wait": lambda c, _: c.runs.wait("spare", "echo", input=SAID),
    "runs.stream": lambda c, _: drained(c.runs.stream("spare", "echo", input=SAID)),
    "runs.list": lambda c, _: c.runs.list("t"),
    "runs.get": lambda c, run: c.runs.get("t", run),
    "runs.join": lambda c, run: c.runs.join("t", run),
    "runs.join_stream": lambda c, run: drained(c.runs.join_stream("t", run)),
    "runs.cancel": lambda c, run: c.runs.cancel("t", run),
    "runs.cancel_many": lambda c, run: c.runs.cancel_many(thread_id="t", run_ids=[run]),
    "runs.delete": lambda c, run: c.runs.delete("t", run),
    "crons.create": lambda c, _: c.crons.create("echo", schedule="* * * * *"),
    "crons.create_for_thread": lambda c, _: c.crons.create_for_thread("t", "echo", schedule="* * * * *"),
    "crons.update": lambda c, _: c.crons.update("x", enabled=False),
    "crons.delete": lambda c, _: c.crons.delete("x"),
    "crons.search": lambda c, _: c.crons.search(),
    "crons.count": lambda c, _: c.crons.count(),
    "store.put_item": lambda c, _: c.store.put_item(["a"], "k", {"v": 1}),
    "store.get_item": lambda c, _: c.store.get_item(["a"], "k"),
    "store.delete_item": lambda c, _: c.store.delete_item(["a"], "k"),
    "store.search_items": lambda c, _: c.store.search_items(["a"]),
    "store.list_namespaces": lambda c, _: c.store.list_namespaces(),
}


async def _thread_stream(client: LangGraphClient) -> None:
    await drained(await client.threads.join_stream("t"))


def test_the_table_lists_every_method_of_the_client_and_no_other() -> None:
    with get_sync_client(url="http://127.0.0.1:9", api_key=None) as client:
        assert methods(client) == set(table())
    assert set(CALLS) == set(table())


async def test_each_method_does_what_the_table_says() -> None:
    gateway = FakeGateway()
    outcomes: dict[str, str] = {}
    answers: list[int] = []

    async def note(response: httpx.Response) -> None:
        answers.append(response.status_code)

    key = await gateway.store.keys.issue("alice", "user")
    async with serving(create_app(gateway.open)) as url, get_client(url=f"{url}/api", api_key=key) as client:
        client.http.client.event_hooks["response"].append(note)
        for name, call in CALLS.items():
            for thread in ("t", "spare"):
                await client.threads.create(thread_id=thread, if_exists="do_nothing")
            run = (await client.runs.create("t", "echo", input=SAID))["run_id"]
            await client.runs.join("t", run)
            answers.clear()
            try:
                await call(client, run)
            except Exception:
                outcomes[name] = str(max(answers, default="no route was reached"))
            else:
                outcomes[name] = "supported" if max(answers) < 300 else str(max(answers))
    assert outcomes == table()


def test_the_synchronous_client_works_too() -> None:
    """Blocking calls, while the gateway runs in another thread's loop."""
    import asyncio
    import threading

    gateway = FakeGateway()
    url: list[str] = []
    ready, stop = threading.Event(), threading.Event()

    async def serve() -> None:
        key = await gateway.store.keys.issue("alice", "user")
        async with serving(create_app(gateway.open)) as address:
            url.extend((f"{address}/api", key))
            ready.set()
            await asyncio.to_thread(stop.wait)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        assert ready.wait(30)
        with get_sync_client(url=url[0], api_key=url[1]) as client:
            made = client.threads.create(metadata={"a": 1})
            values = cast("Any", client.runs.wait(made["thread_id"], "echo", input=SAID))
            assert [message["content"] for message in values["messages"]] == ["hi", "hi"]
            events = [part.event for part in client.runs.stream(made["thread_id"], "echo", input=SAID)]
            assert events[-1] == "end"
            assert len(client.runs.list(made["thread_id"])) == 2
            assert client.threads.search(metadata={"a": 1})[0]["thread_id"] == made["thread_id"]
    finally:
        stop.set()
        thread.join()
