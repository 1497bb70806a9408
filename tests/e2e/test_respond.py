"""A task that asks, answered through the API, the command line and the agent's tool (TASK-16, ORD-1)."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from support.mcp_servers import http_server

from moorage.testing.process import GatewayProcess

ROLES = ("submit", "status", "cancel", "respond")
TOOLSET = {"name": "job", **{f"{role}_tool": f"job_{role}" for role in ROLES}}


class Asking:
    """A gateway with a task that requires input."""

    def __init__(self, gateway: GatewayProcess, http: httpx.Client) -> None:
        self.gateway, self.http = gateway, http
        self.task_id = ""

    def run(self, name: str, **args: Any) -> Any:
        """The tool message that a call of the `direct` assistant came to."""
        call = json.dumps({"tool_calls": [{"name": name, "args": args}]})
        said = {"messages": [{"role": "user", "content": call}]}
        # The gateway's own runs, which tell of the task, may be under way.
        more = {"if_not_exists": "create", "multitask_strategy": "enqueue"}
        body = {"assistant_id": "direct", "input": said, **more}
        values = self.http.post("/api/threads/t/runs/wait", json=body).raise_for_status().json()
        return next(one for one in reversed(values["messages"]) if one["type"] == "tool")

    def task(self) -> Any:
        return self.http.get(f"/api/threads/t/mcp-tasks/{self.task_id}").json()

    def until(self, status: str) -> Any:
        return until(lambda: (found := self.task())["status"] == status and found)

    def answers(self, url: str) -> list[Any]:
        return list(httpx.get(f"{url}/answers").json())

    def command(self, *args: str) -> "subprocess.CompletedProcess[str]":
        environment = {"MOORAGE_HOME": str(self.gateway.home), "PATH": os.environ["PATH"]}
        environment["MOORAGE_EXTENSIONS_CONFIG_PATH"] = str(self.gateway.config_path)
        return subprocess.run(
            [sys.executable, "-m", "moorage", "tasks", "respond", self.task_id, *args],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


def until(condition: Any, seconds: float = 30.0) -> Any:
    deadline = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < deadline, "not in time"
        time.sleep(0.02)
    return answer


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Asking, str]]:
    with http_server("asking") as url:
        servers = {"jobs": {"url": f"{url}/mcp", "task_toolsets": [TOOLSET]}}
        environment = {
            "MOORAGE_TASKS_POLL_INTERVAL_SECONDS": "0.2",
            "MOORAGE_TASKS_INPUT_REQUIRED_INTERVAL_SECONDS": "0.2",
        }
        home = tmp_path_factory.mktemp("asking") / "home"
        with (
            GatewayProcess(home, config={"mcpServers": servers}, environment=environment) as gateway,
            httpx.Client(base_url=gateway.url, headers=gateway.headers, timeout=60) as http,
        ):
            yield Asking(gateway, http), url


@pytest.fixture
def asking(asked: tuple[Asking, str]) -> Asking:
    """With a fresh task that asks."""
    made, _ = asked
    message = made.run("jobs_job_submit")
    made.task_id = message["artifact"]["structured_content"]["task_id"]
    shown = made.until("input_required")
    assert shown["input_required"]["schema"]["required"] == ["approve"]
    return made


@pytest.mark.req("TASK-16", "API-3", "ORD-1")
def test_over_the_api(asking: Asking, asked: tuple[Asking, str]) -> None:
    path = f"/api/threads/t/mcp-tasks/{asking.task_id}/respond"
    before = asking.answers(asked[1])
    wrong = asking.http.post(path, json={"response": {"approve": "perhaps"}})
    assert wrong.status_code == 422
    assert "approve" in wrong.text
    assert "perhaps" not in wrong.text
    for _ in range(3):
        sent = asking.http.post(path, json={"answer_id": "one", "response": {"approve": True}})
        assert sent.status_code == 200, sent.text
    assert asking.until("completed")["result"] == {"approved": True}
    assert asking.answers(asked[1]) == [*before, {"approve": True}]


@pytest.mark.req("TASK-16", "OPS-1")
def test_on_the_command_line(asking: Asking, asked: tuple[Asking, str]) -> None:
    before = asking.answers(asked[1])
    assert asking.command("no json").returncode == 2
    wrong = asking.command('{"approve": 3}')
    assert wrong.returncode == 1
    assert "approve" in wrong.stderr
    for _ in range(2):
        sent = asking.command('{"approve": false}', "--answer-id", "mine", "--json")
        assert sent.returncode == 0, sent.stderr
        assert json.loads(sent.stdout) == {"task_id": asking.task_id, "answer_id": "mine", "state": "sent"}
    assert asking.until("completed")["result"] == {"approved": False}
    assert asking.answers(asked[1]) == [*before, {"approve": False}]
    assert asking.command('{"approve": true}').returncode == 1


@pytest.mark.req("TASK-16", "TASK-20")
def test_by_the_agents_tool(asking: Asking) -> None:
    message = asking.run("respond_to_task", task_id=asking.task_id, response={"approve": True})
    assert message["status"] == "success", message
    assert asking.until("completed")["result"] == {"approved": True}
