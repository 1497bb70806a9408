"""The whole way, in a real gateway: a job becomes a task, and the task completes."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
from moorage.testing import GatewayProcess


def test_a_job_becomes_a_task_that_completes(tmp_path: Path) -> None:
    script = Path(__file__).with_name("job_service.py")
    with subprocess.Popen([sys.executable, str(script), "0"], stdout=subprocess.PIPE, text=True) as service:
        assert service.stdout is not None
        url = service.stdout.readline().strip()
        server = {"url": f"{url}/mcp", "{{ cookiecutter.section }}": {"jobs_url": f"{url}/jobs"}}
        config = {"mcpServers": {"jobs": server}}
        environment = {"MOORAGE_TASKS_POLL_INTERVAL_SECONDS": "0.2"}
        try:
            with (
                GatewayProcess(tmp_path / "home", config=config, environment=environment) as gateway,
                httpx.Client(base_url=gateway.url, headers=gateway.headers, timeout=60) as http,
            ):
                thread = http.post("/api/threads", json={}).json()["thread_id"]
                call = {"tool_calls": [{"name": "jobs_run", "args": {"frames": 1}}]}
                said = {"messages": [{"role": "user", "content": json.dumps(call)}]}
                body = {"assistant_id": "direct", "input": said}
                http.post(f"/api/threads/{thread}/runs/wait", json=body).raise_for_status()
                task: dict[str, Any] = {}
                deadline = time.monotonic() + 30
                while task.get("status") != "completed":
                    assert time.monotonic() < deadline, task
                    (task,) = http.get(f"/api/threads/{thread}/mcp-tasks").json()["items"]
                assert task["driver"] == "{{ cookiecutter.name }}"
        finally:
            service.terminate()
