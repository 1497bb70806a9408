"""The public client behind a load balancer: any replica serves any run (RUN-5, RUN-8, TASK-19)."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from support.http import serving
from support.postgres import PostgresServer
from support.sql_gateway import SqlGateway

from moorage_api.app import create_app

pytestmark = pytest.mark.req("RUN-5", "RUN-8", "TASK-19")


def calling(name: str, **args: Any) -> dict[str, Any]:
    content = json.dumps({"tool_calls": [{"name": name, "args": args}]})
    return {"messages": [{"role": "user", "content": content}]}


@pytest.fixture
async def clients(tmp_path: Path, postgres: PostgresServer) -> AsyncIterator[list[LangGraphClient]]:
    """One of each of two replicas on one PostgreSQL, with the same key."""
    url = postgres.create()
    async with AsyncExitStack() as stack:
        made: list[tuple[str, str]] = []
        for name in ("one", "two"):
            gateway = SqlGateway(tmp_path, url, replica=name, lease_seconds=2.0)
            base = await stack.enter_async_context(serving(create_app(gateway.open)))
            key = await gateway.issue("alice", "user") if not made else made[0][1]
            made.append((f"{base}/api", key))
        yield [await stack.enter_async_context(get_client(url=base, api_key=key)) for base, key in made]
    postgres.drop(url)


async def test_any_replica_streams_joins_and_cancels_any_run(clients: list[LangGraphClient]) -> None:
    one, two = clients
    await one.threads.create(thread_id="t")
    modes: Any = ["values", "messages-tuple"]
    run = await one.runs.create("t", "direct", input=calling("hang"), stream_mode=modes)
    live = two.runs.join_stream("t", run["run_id"])
    async with asyncio.timeout(20):
        before = [await anext(live) for _ in range(3)]
    assert [part.event for part in before] == ["metadata", "values", "messages"]
    assert (await two.runs.get("t", run["run_id"]))["status"] == "running"
    joined = asyncio.create_task(two.runs.join("t", run["run_id"]))
    await two.runs.cancel("t", run["run_id"])
    async with asyncio.timeout(20):
        after = [part async for part in live]
        assert (await joined)["messages"]
    assert after[-1].event == "error"
    assert "gap" not in [part.event for part in before + after]
    # A client that comes back at the other replica goes on where it was.
    middle = before[-1].id
    rest = [part async for part in one.runs.join_stream("t", run["run_id"], last_event_id=middle)]
    assert rest == after
    again = [part async for part in two.runs.join_stream("t", run["run_id"], last_event_id=middle)]
    assert again == after


async def test_a_stateless_run_is_followed_elsewhere_to_its_end(
    clients: list[LangGraphClient],
) -> None:
    one, two = clients
    run = await one.runs.create(None, "direct", input=calling("say", text="hi"), after_seconds=1)
    async with asyncio.timeout(20):
        parts = [part async for part in two.runs.join_stream(run["thread_id"], run["run_id"])]
    assert parts[-1].event == "end"
    assert "said hi" in json.dumps([part.data for part in parts])
