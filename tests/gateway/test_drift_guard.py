"""A task-enabled server that changes under a running gateway (TASK-18, ADMIN-5, CONF-4)."""

import copy
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.mcp_servers import http_server
from support.runs import until

from moorage.testing.process import GatewayProcess
from moorage_api.demo.processes import TASK_TOOLSET, jobs_server

URL = "/api/mcp/config"


class Driven:
    """A gateway with a task-enabled server ``jobs`` and an ordinary one, ``plain``."""

    def __init__(self, gateway: GatewayProcess, http: httpx.AsyncClient, folder: Path) -> None:
        self.gateway, self.http, self.folder = gateway, http, folder
        self.config: Any = json.loads(gateway.config_path.read_text())

    def edit(self, **jobs: Any) -> None:
        """Change the file by hand; None takes a key away."""
        changed = copy.deepcopy(self.config)
        changed["mcpServers"]["jobs"].update(jobs)
        entry = changed["mcpServers"]["jobs"]
        changed["mcpServers"]["jobs"] = {k: v for k, v in entry.items() if v is not None}
        self.gateway.config_path.write_text(json.dumps(changed))

    async def call(self, tool: str, **arguments: Any) -> Any:
        """The tool message that the call came to."""
        calls = json.dumps({"tool_calls": [{"name": tool, "args": arguments}]})
        said = {"messages": [{"role": "user", "content": calls}]}
        # The gateway's own runs, which tell of tasks, may be under way.
        body = {"assistant_id": "direct", "input": said, "multitask_strategy": "enqueue"}
        values = (await self.http.post("/api/threads/t/runs/wait", json=body)).json()
        return next(one for one in reversed(values["messages"]) if one["type"] == "tool")

    async def submit(self, seconds: float = 0) -> Any:
        return await self.call("jobs_hash_folder", folder=str(self.folder), seconds=seconds)

    async def tasks(self) -> list[Any]:
        items: list[Any] = (await self.http.get("/api/threads/t/mcp-tasks")).json()["items"]
        return items


@pytest.fixture
async def driven(tmp_path: Path) -> AsyncIterator[Driven]:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.txt").write_text("one")
    with jobs_server(tmp_path / "jobs.log") as jobs_url, http_server("recorder") as plain_url:
        servers = {
            "jobs": {"type": "http", "url": jobs_url, "task_toolsets": [TASK_TOOLSET]},
            "plain": {"type": "http", "url": f"{plain_url}/mcp"},
        }
        environment = {"MOORAGE_TASKS_POLL_INTERVAL_SECONDS": "0.2"}
        with GatewayProcess(
            tmp_path / "home", config={"mcpServers": servers}, environment=environment
        ) as gateway:
            async with httpx.AsyncClient(base_url=gateway.url, headers=gateway.headers, timeout=60) as http:
                await http.post("/api/threads", json={"thread_id": "t"})
                yield Driven(gateway, http, folder)


@pytest.mark.req("TASK-18", "TASK-14")
async def test_an_edited_file_stops_that_servers_task_tools_and_nothing_else(driven: Driven) -> None:
    started = await driven.submit(seconds=4)
    assert started["status"] == "success", started
    url = driven.config["mcpServers"]["jobs"]["url"]
    changes: list[dict[str, Any]] = [
        {"url": "http://127.0.0.1:9/mcp"},
        {"headers": {"X-A": "b"}},
        {"task_toolsets": None},
    ]
    for change in changes:
        driven.edit(**change)
        refused = await driven.submit()
        assert refused["status"] == "error", (change, refused)
        text = json.dumps(refused["content"])
        assert "'jobs'" in text
        assert next(iter(change)) in text
        assert "Restart the gateway" in text
        assert (await driven.call("plain_touch"))["status"] == "success"
        hidden = await driven.call("jobs_hash_status", task_id="x")
        assert hidden["status"] == "error", "the former binding still hides the status tool"

    async def ended() -> bool:
        return [task["status"] for task in await driven.tasks()] == ["completed"]

    await until(ended, within=30)
    driven.edit(url=url)
    assert (await driven.submit())["status"] == "success"


@pytest.mark.req("TASK-18", "ADMIN-5")
async def test_over_http_a_restart_only_change_answers_409_and_is_not_written(driven: Driven) -> None:
    shown = (await driven.http.get(URL)).json()
    kept = driven.gateway.config_path.read_bytes()
    changes: list[dict[str, Any]] = [
        {"url": "http://127.0.0.1:9/mcp"},
        {"tool_call_timeout": 5},
        {"task_toolsets": []},
    ]
    for change in changes:
        wrong = copy.deepcopy(shown)
        wrong["mcpServers"]["jobs"].update(change)
        for dry_run in (False, True):
            answer = await driven.http.put(URL, json=wrong, params={"dry_run": dry_run})
            assert answer.status_code == 409, answer.text
            assert "'jobs'" in answer.json()["detail"]
            assert next(iter(change)) in answer.json()["detail"]
        assert driven.gateway.config_path.read_bytes() == kept
    assert (await driven.submit())["status"] == "success"


@pytest.mark.req("TASK-18")
async def test_presentation_other_servers_and_disabling_need_no_restart(driven: Driven) -> None:
    shown = (await driven.http.get(URL)).json()
    jobs, plain = shown["mcpServers"]["jobs"], shown["mcpServers"]["plain"]
    jobs["routing"] = {"mode": "prefer", "priority": 3, "keywords": ["hash"]}
    plain["headers"] = {"X-A": "b"}
    shown["mcpServers"]["more"] = {"url": jobs["url"], "task_toolsets": [TASK_TOOLSET], "enabled": False}
    answer = await driven.http.put(URL, json=shown)
    assert answer.status_code == 200, answer.text
    assert answer.json()["tasks_after_restart"] == ["more"]
    assert (await driven.submit(seconds=2))["status"] == "success"
    switched = await driven.http.patch(URL, json={"server": "jobs", "enabled": False})
    assert switched.status_code == 200
    gone = await driven.submit()
    assert gone["status"] == "error"

    async def ended() -> bool:
        return [task["status"] for task in await driven.tasks()] == ["completed"]

    await until(ended, within=30)
    assert (await driven.http.patch(URL, json={"server": "jobs", "enabled": True})).status_code == 200
    assert (await driven.submit())["status"] == "success"
