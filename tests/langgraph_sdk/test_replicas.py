"""The public client behind a load balancer: any replica serves any run (RUN-5, RUN-8, TASK-19)."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
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

SECRET = "s3cr3t-value-of-alice"

pytestmark = pytest.mark.req("RUN-5", "RUN-8", "TASK-19")


def calling(name: str, **args: Any) -> dict[str, Any]:
    content = json.dumps({"tool_calls": [{"name": name, "args": args}]})
    return {"messages": [{"role": "user", "content": content}]}


@pytest.fixture
def gateways(tmp_path: Path, postgres: PostgresServer) -> Iterator[list[SqlGateway]]:
    """Two replicas on one PostgreSQL, yet to be opened."""
    url = postgres.create()
    yield [SqlGateway(tmp_path, url, replica=name, lease_seconds=2.0) for name in ("one", "two")]
    postgres.drop(url)


@pytest.fixture
async def clients(gateways: list[SqlGateway]) -> AsyncIterator[list[LangGraphClient]]:
    """One of each replica, with the same key."""
    async with AsyncExitStack() as stack:
        urls = [await stack.enter_async_context(serving(create_app(one.open))) for one in gateways]
        key = await gateways[0].issue("alice", "user")
        yield [await stack.enter_async_context(get_client(url=f"{url}/api", api_key=key)) for url in urls]


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


@pytest.mark.req("RUN-1", "RUN-4")
async def test_what_is_copied_for_another_replica_holds_no_secret(
    clients: list[LangGraphClient], gateways: list[SqlGateway]
) -> None:
    one, two = clients
    await one.threads.create(thread_id="t")
    modes: Any = ["values", "updates", "messages-tuple", "debug", "events", "custom", "tasks", "checkpoints"]
    config: Any = {"metadata": {"auth_token": SECRET}, "context": {"secrets": {"token": SECRET}}}
    run = await one.runs.create(
        "t",
        "direct",
        input=calling("say", text="hi"),
        stream_mode=modes,
        after_seconds=1,
        config=config,
    )
    async with asyncio.timeout(20):
        parts = [part async for part in two.runs.join_stream("t", run["run_id"])]
    assert {"values", "debug", "events", "end"} <= {part.event for part in parts}
    assert SECRET not in str(parts)
    rows = gateways[0].dump()
    assert rows["stream_rows"]
    assert SECRET not in str(rows)
