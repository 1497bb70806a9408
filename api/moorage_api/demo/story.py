"""The demo's steps, told as they happen."""

import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import httpx

from moorage.testing.process import GatewayProcess
from moorage_api.demo.processes import DemoFailed, client, deadline, demo_gateway, jobs_server

Tell = Callable[[str], None]
Progress = Callable[[dict[str, Any], float], None]


@dataclass
class Evidence:
    """What the demo saw; ``--json`` prints it."""

    thread_id: str = ""
    task_id: str = ""
    gateways: list[dict[str, Any]] = field(default_factory=list)
    task_before_kill: dict[str, Any] = field(default_factory=dict)
    task: dict[str, Any] = field(default_factory=dict)
    result: dict[str, Any] = field(default_factory=dict)
    notification_messages: list[str] = field(default_factory=list)
    notification_runs: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def run_demo(*, folder: str | None, job_seconds: float, tell: Tell, progress: Progress) -> Evidence:
    """Run it all on a temporary home, which is removed afterwards. Raises `DemoFailed`."""
    started = time.monotonic()
    evidence = Evidence()
    with tempfile.TemporaryDirectory(prefix="moorage-demo-", ignore_cleanup_errors=True) as name:
        home = Path(name)
        with jobs_server(home / "jobs.log") as jobs_url:
            tell(f"An MCP server with slow jobs runs at {jobs_url}")
            gateway = demo_gateway(home, jobs_url)
            try:
                _story(gateway, evidence, folder=folder, seconds=job_seconds, tell=tell, progress=progress)
            finally:
                gateway.stop()
    evidence.seconds = round(time.monotonic() - started, 1)
    return evidence


def _story(
    gateway: GatewayProcess,
    evidence: Evidence,
    *,
    folder: str | None,
    seconds: float,
    tell: Tell,
    progress: Progress,
) -> None:
    _start(gateway, evidence, tell)
    with client(gateway) as http:
        _submit(http, evidence, folder=folder, seconds=seconds)
        tell(f"The assistant submitted the job; the agent is free again, the task is {evidence.task_id}")
        before = _watch(
            http,
            evidence,
            progress,
            until=lambda task, gone: gone > seconds / 4 and bool(task["last_polled_at"]),
        )
        if before["status"] in ("completed", "failed", "cancelled"):
            raise DemoFailed(f"the job was {before['status']} before the gateway could be killed")
        evidence.task_before_kill = before
    status = gateway.kill()
    evidence.gateways[-1]["exit_status"] = status
    tell(f"Killed the gateway with SIGKILL while the task was {before['status']!r} (exit status {status})")
    _start(gateway, evidence, tell)
    with client(gateway) as http:
        task = _watch(
            http,
            evidence,
            progress,
            until=lambda task, _: task["notification_status"] in ("delivered", "dead_letter"),
        )
        evidence.task, evidence.result = task, task["result"] or {}
        if task["status"] != "completed":
            raise DemoFailed(f"the task ended as {task['status']}: {task['error']}")
        tell("The task completed, and its notification reached the thread")
        _read_thread(http, evidence)


def _start(gateway: GatewayProcess, evidence: Evidence, tell: Tell) -> None:
    again = "again, on the same home, " if evidence.gateways else ""
    gateway.start()
    evidence.gateways.append({"pid": gateway.pid, "url": gateway.url})
    tell(f"The gateway runs {again}at {gateway.url} (process {gateway.pid})")


def _post(http: httpx.Client, path: str, body: dict[str, Any]) -> Any:
    answer = http.post(path, json=body)
    if answer.is_error:
        raise DemoFailed(f"POST {path} answered {answer.status_code}: {answer.text[:500]}")
    return answer.json()


def _submit(http: httpx.Client, evidence: Evidence, *, folder: str | None, seconds: float) -> None:
    evidence.thread_id = _post(http, "/api/threads", {})["thread_id"]
    arguments: dict[str, Any] = {"seconds": seconds} | ({"folder": folder} if folder else {})
    calls = {"tool_calls": [{"name": "jobs_hash_folder", "args": arguments}]}
    _post(
        http,
        f"/api/threads/{evidence.thread_id}/runs/wait",
        {
            "assistant_id": "direct",
            "input": {"messages": [{"role": "user", "content": json.dumps(calls)}]},
        },
    )
    tasks = http.get(f"/api/threads/{evidence.thread_id}/mcp-tasks").json()["items"]
    if len(tasks) != 1:
        raise DemoFailed(f"the thread has {len(tasks)} tasks instead of one")
    evidence.task_id = tasks[0]["task_id"]


def _watch(
    http: httpx.Client,
    evidence: Evidence,
    progress: Progress,
    *,
    until: Callable[[dict[str, Any], float], bool],
) -> dict[str, Any]:
    for gone in deadline(50, "what the demo waits for"):
        task: dict[str, Any] = http.get(
            f"/api/threads/{evidence.thread_id}/mcp-tasks/{evidence.task_id}"
        ).json()
        progress(task, gone)
        if until(task, gone) or task["status"] in ("failed", "cancelled"):
            return task
    raise AssertionError("unreachable")


def _read_thread(http: httpx.Client, evidence: Evidence) -> None:
    """The thread's messages that name the task, and the runs that brought them; exactly one each."""
    thread = f"/api/threads/{evidence.thread_id}"
    messages = http.get(f"{thread}/state").json()["values"]["messages"]
    evidence.notification_messages = [
        _text(message["content"])
        for message in messages
        if message["type"] == "human" and evidence.task_id in _text(message["content"])
    ]
    evidence.notification_runs = [
        run["run_id"]
        for run in http.get(f"{thread}/runs").json()
        if run["metadata"].get("moorage_task_id") == evidence.task_id
    ]
    if len(evidence.notification_messages) != 1 or len(evidence.notification_runs) != 1:
        raise DemoFailed(
            f"the notification arrived {len(evidence.notification_messages)} times, "
            f"in {len(evidence.notification_runs)} runs, instead of once"
        )


def _text(content: Any) -> str:
    return content if isinstance(content, str) else json.dumps(content)
