"""SIGKILL at four moments, and what a gateway that is started again makes of it."""

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.mcp_servers import http_server

from moorage.testing.process import GatewayProcess

TOOLSET = {"name": "job", **{f"{role}_tool": f"job_{role}" for role in ("submit", "status", "cancel")}}


def until(condition: Callable[[], Any], seconds: float = 30.0) -> Any:
    """What the condition comes to, once it is true."""
    deadline = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < deadline, "not in time"
        time.sleep(0.01)
    return answer


class Scene:
    """A gateway, its jobs server and the files that steer the server."""

    def __init__(self, gateway: GatewayProcess, folder: Path) -> None:
        self.gateway, self.folder = gateway, folder

    def calls(self, line: str) -> int:
        log = self.folder / "log"
        return log.read_text().splitlines().count(line) if log.exists() else 0

    def flag(self, name: str, *, up: bool = True) -> None:
        path = self.folder / name
        path.touch() if up else path.unlink()

    def http(self) -> httpx.Client:
        return httpx.Client(base_url=self.gateway.url, headers=self.gateway.headers, timeout=60)

    def submit(self) -> None:
        call = json.dumps({"tool_calls": [{"name": "jobs_job_submit", "args": {}}]})
        said = {"messages": [{"role": "user", "content": call}]}
        body = {"assistant_id": "direct", "input": said, "if_not_exists": "create"}
        with self.http() as http:
            http.post("/api/threads/t/runs/wait", json=body)

    def task(self) -> Any:
        with self.http() as http:
            items = http.get("/api/threads/t/mcp-tasks").json().get("items", [])
            return http.get(f"/api/threads/t/mcp-tasks/{items[0]['task_id']}").json() if items else None

    def notices(self) -> list[Any]:
        """The messages of the gateway itself in the thread."""
        with self.http() as http:
            messages = http.get("/api/threads/t/state").json()["values"].get("messages", [])
        return [one for one in messages if one["additional_kwargs"].get("moorage_internal")]

    def kill_and_start_again(self) -> None:
        assert self.gateway.kill() == -9
        self.gateway.start()

    @contextmanager
    def locked(self) -> Iterator[sqlite3.Connection]:
        """No process can write to the database meanwhile."""
        path = self.gateway.home / "moorage.sqlite"
        connection = sqlite3.connect(path, isolation_level=None, timeout=30)
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
        finally:
            connection.execute("ROLLBACK")
            connection.close()


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    folder = tmp_path / "jobs"
    folder.mkdir()
    with http_server("holding", str(folder)) as url:
        servers = {"jobs": {"url": f"{url}/mcp", "task_toolsets": [TOOLSET]}}
        settings = {"POLL_INTERVAL_SECONDS": "0.2", "LEASE_SECONDS": "2", "BACKOFF_CAP_SECONDS": "0.5"}
        environment = {f"MOORAGE_TASKS_{name}": value for name, value in settings.items()}
        environment["MOORAGE_RUNS_LEASE_SECONDS"] = "2"
        with GatewayProcess(
            tmp_path / "home", config={"mcpServers": servers}, environment=environment
        ) as gateway:
            yield Scene(gateway, folder)
        for flag in folder.glob("hold-*"):
            flag.unlink()


def completed_once(scene: Scene) -> None:
    task = until(lambda: (found := scene.task()) and found["notification_status"] == "delivered" and found)
    assert task["status"] == "completed"
    assert task["result"] == {"frames": 3}
    assert len(scene.notices()) == 1
    assert scene.calls("begin job_submit") == 1


@pytest.mark.req("TASK-22", "TASK-3", "NOTE-1")
def test_during_a_submit(scene: Scene) -> None:
    """The server has the job and nobody its id: told as such, and never submitted again (C60 h)."""
    scene.flag("hold-submit")
    submitting = threading.Thread(target=_quietly, args=(scene.submit,))
    submitting.start()
    until(lambda: scene.calls("begin job_submit"))
    scene.kill_and_start_again()
    submitting.join()
    task = until(lambda: (found := scene.task()) and found["status"] == "failed" and found)
    assert "unknown" in task["error"]
    until(lambda: scene.task()["notification_status"] == "delivered")
    assert scene.calls("begin job_submit") == 1
    assert len(scene.notices()) == 1


def _quietly(work: Callable[[], None]) -> None:
    try:
        work()
    except httpx.HTTPError:
        return


@pytest.mark.req("TASK-6", "TASK-10", "TASK-19")
def test_during_a_status_call(scene: Scene) -> None:
    scene.flag("hold-status")
    scene.submit()
    until(lambda: scene.calls("begin job_status"))
    scene.kill_and_start_again()
    scene.flag("done")
    scene.flag("hold-status", up=False)
    completed_once(scene)


@pytest.mark.req("TASK-6", "TASK-9", "TASK-10")
def test_during_an_apply(scene: Scene) -> None:
    """The answer has arrived and cannot be written, since the database is held."""
    scene.flag("hold-status")
    scene.submit()
    until(lambda: scene.calls("begin job_status"))
    with scene.locked(), scene.http() as http:
        scene.flag("done")
        scene.flag("hold-status", up=False)
        until(lambda: scene.calls("answered job_status"))
        for _ in range(5):
            assert http.get("/healthz").status_code == 200
        assert scene.gateway.kill() == -9
    scene.gateway.start()
    assert scene.task()["status"] in ("working", "completed")
    completed_once(scene)
    assert scene.calls("begin job_status") >= 2


@pytest.mark.req("NOTE-2", "NOTE-3", "TASK-19")
def test_between_a_notifications_launch_and_its_bookkeeping(scene: Scene) -> None:
    scene.flag("done")
    scene.submit()

    def launched() -> bool:
        with scene.locked() as rows:
            runs = rows.execute("SELECT count(*) FROM runs WHERE idempotency_key IS NOT NULL").fetchone()[0]
            status = rows.execute("SELECT notification_status FROM tasks").fetchone()
            if not runs:
                return False
            assert status == ("pending",), "the launch is there and the bookkeeping is not"
            assert scene.gateway.kill() == -9
            return True

    until(launched)
    scene.gateway.start()
    completed_once(scene)
    with scene.locked() as rows:
        keys = rows.execute("SELECT idempotency_key FROM runs WHERE idempotency_key IS NOT NULL").fetchall()
    assert len(keys) == len(set(keys))
