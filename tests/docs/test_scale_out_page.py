"""docs/how-to/scale-out.md: two replicas on one PostgreSQL, as the page starts them (TASK-19)."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.postgres import PostgresServer

from moorage.testing.process import GatewayProcess
from moorage_api.demo.processes import TASK_TOOLSET, jobs_server

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "scale-out.md"


def until(condition: Callable[[], Any], seconds: float = 30.0) -> Any:
    deadline = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < deadline, "not in time"
        time.sleep(0.02)
    return answer


def commands() -> list[str]:
    found = re.findall(r"^\$ (.*)$", PAGE.read_text(), re.MULTILINE)
    assert [line.split()[0] for line in found] == [
        "export", "moorage", "moorage", "MOORAGE_HOME=/var/lib/moorage-a", "MOORAGE_HOME=/var/lib/moorage-b",
    ]  # fmt: skip
    return found


@pytest.mark.req("TASK-19", "OPS-2", "NOTE-4")
def test_two_replicas_share_the_work_and_one_takes_over(tmp_path: Path, postgres: PostgresServer) -> None:
    url = postgres.create(empty=True)
    _, upgrade, keys, *serves = commands()
    environment = {"MOORAGE_DATABASE_URL": url, "PATH": os.environ["PATH"], "MOORAGE_HOME": str(tmp_path)}

    def moorage(line: str) -> str:
        command = [sys.executable, "-m", *line.split()]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    moorage(upgrade)
    key = re.search(r"moorage_[\w-]+", moorage(keys))
    assert key is not None
    assert all("serve --port" in line for line in serves)
    shared = {
        "MOORAGE_DATABASE_URL": url,
        "MOORAGE_TASKS_LEASE_SECONDS": "3",
        "MOORAGE_RUNS_LEASE_SECONDS": "3",
        # Nothing but a wake-up makes a poll come soon.
        "MOORAGE_TASKS_POLL_INTERVAL_SECONDS": "1",
    }
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.txt").write_text("one")
    with ExitStack() as stack:
        jobs_url = stack.enter_context(jobs_server(tmp_path / "jobs.log"))
        servers = {"jobs": {"type": "http", "url": jobs_url, "task_toolsets": [TASK_TOOLSET]}}
        config = {"mcpServers": servers}
        first = stack.enter_context(GatewayProcess(tmp_path / "a", config=config, environment=shared))
        second = stack.enter_context(GatewayProcess(tmp_path / "b", config=config, environment=shared))
        headers = {"Authorization": f"Bearer {key[0]}"}
        a = stack.enter_context(httpx.Client(base_url=first.url, headers=headers, timeout=60))
        b = stack.enter_context(httpx.Client(base_url=second.url, headers=headers, timeout=60))

        def submit(http: httpx.Client, thread: str, seconds: float) -> None:
            call = {"name": "jobs_hash_folder", "args": {"folder": str(folder), "seconds": seconds}}
            said = {"messages": [{"role": "user", "content": json.dumps({"tool_calls": [call]})}]}
            body = {"assistant_id": "direct", "input": said, "if_not_exists": "create"}
            http.post(f"/api/threads/{thread}/runs/wait", json=body).raise_for_status()

        def task(http: httpx.Client, thread: str) -> Any:
            (row,) = http.get(f"/api/threads/{thread}/mcp-tasks").json()["items"]
            return http.get(f"/api/threads/{thread}/mcp-tasks/{row['task_id']}").json()

        def delivered(http: httpx.Client, thread: str) -> Any:
            return task(http, thread)["notification_status"] == "delivered"

        submit(a, "one", 1)
        with b.stream("GET", "/api/threads/one/events") as events:
            seen = ""
            for piece in events.iter_text():
                seen += piece
                if '"completed"' in seen:
                    break
        until(lambda: delivered(b, "one"))
        assert task(a, "one")["status"] == "completed"

        submit(a, "two", 4)
        assert first.kill() == -9
        until(lambda: delivered(b, "two"))
        messages = b.get("/api/threads/two/state").json()["values"]["messages"]
        assert len([one for one in messages if one["additional_kwargs"].get("moorage_internal")]) == 1
    postgres.drop(url)
