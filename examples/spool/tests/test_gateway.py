"""The whole way: a gateway, a spool folder and a worker."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
from moorage.testing import GatewayProcess


def test_a_job_becomes_a_task_that_completes(tmp_path: Path) -> None:
    folder = tmp_path / "spool"
    server = {
        "command": sys.executable,
        "args": ["-m", "moorage_spool.server"],
        "spool": {"folder": str(folder)},
    }
    config = {"mcpServers": {"batch": server}}
    environment = {"MOORAGE_TASKS_POLL_INTERVAL_SECONDS": "0.2"}
    command = [sys.executable, "-m", "moorage_spool.worker", str(folder), "cat"]
    worker = subprocess.Popen(command)
    try:
        drive(tmp_path / "home", config, environment)
    finally:
        worker.terminate()
        worker.wait()


def drive(home: Path, config: dict[str, Any], environment: dict[str, str]) -> None:
    with (
        GatewayProcess(home, config=config, environment=environment) as gateway,
        httpx.Client(base_url=gateway.url, headers=gateway.headers, timeout=60) as http,
    ):
        thread = http.post("/api/threads", json={}).json()["thread_id"]
        call = {"tool_calls": [{"name": "batch_run", "args": {"scene": "harbour"}}]}
        said = {"messages": [{"role": "user", "content": json.dumps(call)}]}
        body = {"assistant_id": "direct", "input": said}
        http.post(f"/api/threads/{thread}/runs/wait", json=body).raise_for_status()
        task: dict[str, Any] = {}
        deadline = time.monotonic() + 30
        while task.get("status") != "completed":
            assert time.monotonic() < deadline, task
            (row,) = http.get(f"/api/threads/{thread}/mcp-tasks").json()["items"]
            task = http.get(f"/api/threads/{thread}/mcp-tasks/{row['task_id']}").json()
        assert task["result"] == {"scene": "harbour"}
