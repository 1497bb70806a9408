"""The table of what the public client can do is true, and complete (RUN-5)."""

import asyncio
import inspect
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient, SyncLangGraphClient, get_sync_client
from support.http import serving
from support.sql_gateway import SqlGateway

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


async def done(result: Any) -> Any:
    """What a method of the asynchronous client gives, to its end."""
    if inspect.isawaitable(result):
        result = await result
    return [part async for part in result] if isinstance(result, AsyncIterator) else result


def done_at_once(result: Any) -> Any:
    """The same of the synchronous one."""
    return list(result) if isinstance(result, Iterator) else result


async def third_protocol(client: LangGraphClient) -> None:
    async with client.threads.stream("t", assistant_id="direct") as thread:
        await thread.run.start(input=SAID)


def third_protocol_at_once(client: SyncLangGraphClient) -> None:
    with client.threads.stream("t", assistant_id="direct") as thread:
        thread.run.start(input=SAID)


Call = Callable[[Any, str], Any]
CALLS: dict[str, Call] = {
    "assistants.get": lambda c, _: c.assistants.get("direct"),
    "assistants.search": lambda c, _: c.assistants.search(),
    "assistants.count": lambda c, _: c.assistants.count(),
    "assistants.create": lambda c, _: c.assistants.create("direct"),
    "assistants.update": lambda c, _: c.assistants.update("direct", name="x"),
    "assistants.delete": lambda c, _: c.assistants.delete("direct"),
    "assistants.get_versions": lambda c, _: c.assistants.get_versions("direct"),
    "assistants.set_latest": lambda c, _: c.assistants.set_latest("direct", 1),
    "assistants.get_graph": lambda c, _: c.assistants.get_graph("direct"),
    "assistants.get_schemas": lambda c, _: c.assistants.get_schemas("direct"),
    "assistants.get_subgraphs": lambda c, _: c.assistants.get_subgraphs("direct", namespace="x"),
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
    "threads.join_stream": lambda c, _: c.threads.join_stream("t"),
    "threads.stream": lambda c, _: third_protocol(c),
    "runs.create": lambda c, _: c.runs.create("spare", "direct", input=SAID),
    "runs.create_batch": lambda c, _: c.runs.create_batch([cast("Any", {"assistant_id": "direct"})]),
    "runs.wait": lambda c, _: c.runs.wait("spare", "direct", input=SAID),
    "runs.stream": lambda c, _: c.runs.stream("spare", "direct", input=SAID),
    "runs.list": lambda c, _: c.runs.list("t"),
    "runs.get": lambda c, run: c.runs.get("t", run),
    "runs.join": lambda c, run: c.runs.join("t", run),
    "runs.join_stream": lambda c, run: c.runs.join_stream("t", run),
    "runs.cancel": lambda c, run: c.runs.cancel("t", run),
    "runs.cancel_many": lambda c, run: c.runs.cancel_many(thread_id="t", run_ids=[run]),
    "runs.delete": lambda c, run: c.runs.delete("t", run),
    "crons.create": lambda c, _: c.crons.create("direct", schedule="* * * * *"),
    "crons.create_for_thread": lambda c, _: c.crons.create_for_thread("t", "direct", schedule="* * * * *"),
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


SYNC_CALLS: dict[str, Call] = {**CALLS, "threads.stream": lambda c, _: third_protocol_at_once(c)}


def test_the_table_lists_every_method_of_the_client_and_no_other() -> None:
    with get_sync_client(url="http://127.0.0.1:9", api_key=None) as client:
        assert methods(client) == set(table())
    assert set(CALLS) == set(table())


@pytest.mark.parametrize("kind", ["async", "sync"])
async def test_each_method_does_what_the_table_says(kind: str, tmp_path: Path) -> None:
    """Real stores and the real ``direct`` assistant; the synchronous client blocks in a thread of its own."""
    gateway = SqlGateway(tmp_path, f"sqlite:///{tmp_path}/moorage.db")
    outcomes: dict[str, str] = {}
    answers: list[int] = []

    async def note(response: httpx.Response) -> None:
        answers.append(response.status_code)

    async with serving(create_app(gateway.open)) as url:
        key = await gateway.issue("alice", "user")
        with get_sync_client(url=f"{url}/api", api_key=key) as blocking:
            blocking.http.client.event_hooks["response"].append(
                lambda response: answers.append(response.status_code)
            )
            async with get_client(url=f"{url}/api", api_key=key) as client:
                client.http.client.event_hooks["response"].append(note)
                for name in CALLS:
                    for thread in ("t", "spare"):
                        await client.threads.create(thread_id=thread, if_exists="do_nothing")
                    run = (await client.runs.create("t", "direct", input=SAID))["run_id"]
                    await client.runs.join("t", run)
                    answers.clear()
                    try:
                        if kind == "sync":
                            call = SYNC_CALLS[name]
                            await asyncio.to_thread(lambda c=call, r=run: done_at_once(c(blocking, r)))  # type: ignore[misc]
                        else:
                            await done(CALLS[name](client, run))
                    except Exception:
                        outcomes[name] = str(max(answers, default="no route was reached"))
                    else:
                        outcomes[name] = "supported" if max(answers) < 300 else str(max(answers))
    assert outcomes == table()


async def test_the_synchronous_client_reads_what_it_wrote(tmp_path: Path) -> None:
    gateway = SqlGateway(tmp_path, f"sqlite:///{tmp_path}/moorage.db")
    hello = json.dumps({"tool_calls": [{"name": "say", "args": {"text": "hello"}}]})

    def talk(url: str, key: str) -> None:
        with get_sync_client(url=url, api_key=key) as client:
            thread = client.threads.create(metadata={"a": 1})["thread_id"]
            said: Any = {"messages": [{"role": "user", "content": hello}]}
            values = client.runs.wait(thread, "direct", input=said)
            assert "said hello" in json.dumps(values)
            events = [part.event for part in client.runs.stream(thread, "direct", input=said)]
            assert events[-1] == "end"
            assert len(client.runs.list(thread)) == 2
            assert client.threads.search(metadata={"a": 1})[0]["thread_id"] == thread

    async with serving(create_app(gateway.open)) as url:
        await asyncio.to_thread(talk, f"{url}/api", await gateway.issue("alice", "user"))
