"""A thread's events as they happen, over real HTTP and on real stores (API-3, NOTE-4)."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.http import serving
from support.sql_gateway import SqlGateway

from moorage_api.app import create_app

pytestmark = pytest.mark.req("API-3", "NOTE-4")


async def events_of(answer: httpx.Response) -> AsyncIterator[tuple[str, str, Any]]:
    """(id, event, data) of a stream, one after the other."""
    fields: dict[str, str] = {}
    async for line in answer.aiter_lines():
        if line.startswith(":"):
            continue
        if not line and fields:
            yield fields.get("id", ""), fields["event"], json.loads(fields["data"])
            fields = {}
        elif line:
            name, _, value = line.partition(": ")
            fields[name] = value


class Watcher:
    """Reads one stream in the background."""

    def __init__(self, http: httpx.AsyncClient, path: str, **headers: str) -> None:
        self.seen: list[tuple[str, str, Any]] = []
        self.status = 0
        self._task = asyncio.create_task(self._read(http, path, headers))

    async def _read(self, http: httpx.AsyncClient, path: str, headers: dict[str, str]) -> None:
        async with http.stream("GET", path, headers=headers) as answer:
            self.status = answer.status_code
            async for event in events_of(answer):
                self.seen.append(event)

    async def until(self, count: int) -> list[tuple[str, str, Any]]:
        async with asyncio.timeout(10):
            while len(self.seen) < count:
                if self._task.done():
                    self._task.result()
                    raise AssertionError(f"the stream ended with {self.seen}")
                await asyncio.sleep(0.01)
        return self.seen

    async def ended(self) -> None:
        async with asyncio.timeout(10):
            await self._task

    async def leave(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


@pytest.fixture
def gateway(tmp_path: Path, store_url: str) -> SqlGateway:
    return SqlGateway(tmp_path, store_url)


async def test_the_log_is_replayed_and_goes_on_and_is_resumed(gateway: SqlGateway) -> None:
    async with serving(create_app(gateway.open)) as url, httpx.AsyncClient(base_url=url, timeout=20) as http:
        store = gateway.store
        http.headers["X-Api-Key"] = await gateway.issue("alice", "user")
        thread = (await http.post("/api/threads", json={})).json()["thread_id"]
        path = f"/api/threads/{thread}/events"
        await store.events.append(thread, event_type="old", payload={"n": 0})

        watcher = Watcher(http, path)
        assert (await watcher.until(1))[0][1] == "old"
        for n in (1, 2, 3):
            await store.events.append(thread, event_type="task.attention", task_id="t", payload={"n": n})
        seen = await watcher.until(4)
        await watcher.leave()
        assert [data["payload"]["n"] for _, _, data in seen] == [0, 1, 2, 3]
        assert [int(one) for one, _, _ in seen] == sorted({int(one) for one, _, _ in seen})
        assert {"seq", "event_type", "metadata", "task_id"} <= set(seen[1][2])

        await store.events.append(thread, event_type="missed", payload={"n": 4})
        again = Watcher(http, path, **{"Last-Event-ID": seen[2][0]})
        assert [data["payload"]["n"] for _, _, data in await again.until(2)] == [3, 4]
        await again.leave()

        filtered = Watcher(http, f"{path}?event_types=missed,old")
        assert [event for _, event, _ in await filtered.until(2)] == ["old", "missed"]
        await http.delete(f"/api/threads/{thread}")
        await filtered.ended()
        assert filtered.seen[-1][1] == "end"


async def test_somebody_elses_events_are_not_there(gateway: SqlGateway) -> None:
    async with serving(create_app(gateway.open)) as url, httpx.AsyncClient(base_url=url, timeout=20) as http:
        alice, bob = await gateway.issue("alice", "user"), await gateway.issue("bob", "user")
        made = await http.post("/api/threads", json={}, headers={"X-Api-Key": alice})
        path = f"/api/threads/{made.json()['thread_id']}/events"
        assert (await http.get(path, headers={"X-Api-Key": bob})).status_code == 404
        assert (await http.get(path)).status_code == 401
