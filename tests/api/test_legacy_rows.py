"""Rows from before the rule: hidden on every way out, never written to (RUN-4, C36)."""

from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from support.api_fakes import FakeGateway
from support.http import serving
from support.routes import operations, text_of

from moorage.contract import RunRecord, RunStatus, ThreadState
from moorage_api.app import create_app

SECRET = "s3cr3t-value-of-long-ago"
LEGACY = {"auth_token": SECRET, "keep": 1}


async def _old_rows(gateway: FakeGateway) -> None:
    now = datetime.now(UTC)
    store = gateway.store
    await store.threads.create("old", "alice", LEGACY)
    run = RunRecord(
        run_id="run-1",
        thread_id="old",
        user_id="alice",
        assistant_id="echo",
        status=RunStatus.SUCCESS,
        metadata=LEGACY,
        kwargs={"input": None, "config": {"metadata": LEGACY, "configurable": LEGACY}, "metadata": LEGACY},
        created_at=now,
        updated_at=now,
    )
    await store.runs.create(run, exclusive=False)
    await store.events.append("old", event_type="run_start", run_id="run-1", metadata=LEGACY)
    gateway.assistant.states["old"] = [
        ThreadState(values={"messages": []}, checkpoint_id="c1", metadata={**LEGACY, "run_id": "run-1"})
    ]


def with_metadata(text: str) -> bool:
    """What the legacy rows have beside the key is shown."""
    return '"keep":1' in text


@pytest.mark.req("RUN-4")
async def test_no_route_returns_the_key_and_none_writes_it_away() -> None:
    gateway = FakeGateway()
    async with serving(create_app(gateway.open)) as url, httpx.AsyncClient(base_url=url) as http:
        http.headers["X-Api-Key"] = await gateway.store.keys.issue("alice", "user", "admin")
        await _old_rows(gateway)
        kept = gateway.store.dump()
        bodies: dict[str, Any] = {"post_state_at": {"checkpoint": {"checkpoint_id": "c1"}}}
        shown = 0
        for one in await operations(http):
            reads = one.method == "get" or one.name in ("search_threads", "post_history", "post_state_at")
            if not reads or "not supported" in one.definition["tags"]:
                continue
            path = one.at(thread_id="old", run_id="run-1", checkpoint_id="c1", assistant_id="echo")
            body = {"json": bodies.get(one.name, {})} if one.has_body else {}
            text = await text_of(http, one.method, path, enough=with_metadata, **body)
            assert SECRET not in text, one.name
            shown += with_metadata(text)
        assert shown >= 7
        assert gateway.store.dump() == kept
        patched = await http.patch("/api/threads/old", json={"metadata": {"more": 2}})
        assert patched.json()["metadata"] == {"keep": 1, "more": 2}
        row = gateway.store.threads.rows["old"]
        assert row.metadata == {**LEGACY, "more": 2}
