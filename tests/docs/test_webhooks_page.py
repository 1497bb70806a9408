"""docs/how-to/webhooks.md, executed: its receiver, its settings, a real gateway and a real task."""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from moorage.testing.process import GatewayProcess

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "webhooks.md"
SECRET = "whsec_c2lnbmVkIGJ5IHRoaXMga2V5IG9mIG91cnM="


def block(info: str) -> str:
    found = re.search(rf"^```{info}\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None, f"the page has no block {info!r}"
    return found[1]


@contextmanager
def printing(*command: str, **environment: str) -> Iterator[Iterator[str]]:
    """A process that is killed at the end, or after a minute; yields its lines."""
    process = subprocess.Popen(
        [sys.executable, *command],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    timer = threading.Timer(60, process.kill)
    timer.start()
    try:
        yield iter(process.stdout.readline, "")
    finally:
        timer.cancel()
        process.kill()
        process.stdout.close()
        process.wait(20)


def start_task(gateway: GatewayProcess, folder: Path) -> str:
    """Returns the path that lists the thread's tasks."""
    with httpx.Client(base_url=gateway.url, headers=gateway.headers, timeout=60) as http:
        thread = http.post("/api/threads", json={}).json()["thread_id"]
        call = {"name": "jobs_hash_folder", "args": {"folder": str(folder), "seconds": 0.1}}
        content = json.dumps({"tool_calls": [call]})
        body = {"assistant_id": "direct", "input": {"messages": [{"role": "user", "content": content}]}}
        http.post(f"/api/threads/{thread}/runs/wait", json=body).raise_for_status()
    return f"/api/threads/{thread}/mcp-tasks"


@pytest.mark.req("NOTE-4", "NOTE-3", "CRED-9")
@pytest.mark.parametrize("primary", [False, True])
def test_the_pages_receiver_is_told_the_result(tmp_path: Path, primary: bool) -> None:
    (tmp_path / "receiver.py").write_text(block("python receiver"))
    folder, home = tmp_path / "three", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    for name in ("a", "b", "c"):
        (folder / name).write_text(name)
    config: dict[str, Any] = json.loads((ROOT / "examples/folder-jobs/extensions_config.json").read_text())
    with (
        printing(str(tmp_path / "receiver.py"), MOORAGE_WEBHOOK_SECRET=SECRET, PORT="0") as told,
        printing("-m", "moorage_drivers.example_server", "--port", "0") as jobs,
    ):
        found = next(re.search(r"http://\S+/mcp", line) for line in jobs if "/mcp" in line)
        assert found
        config["mcpServers"]["jobs"]["url"] = found[0]
        settings = block("toml settings").replace(
            "https://ci.example/moorage", f"{next(told).strip()}/moorage"
        )
        (home / "moorage.toml").write_text(settings + (block("toml primary") if primary else ""))
        environment = {"MOORAGE_WEBHOOK_SECRET": SECRET, "MOORAGE_TASKS_POLL_INTERVAL_SECONDS": "0.2"}
        with GatewayProcess(home, config=config, environment=environment) as gateway:
            tasks = start_task(gateway, folder)
            line = next(told)
            assert line.startswith("task.completed hash-folder "), line
            assert "'files': 3" in line
            with httpx.Client(base_url=gateway.url, headers=gateway.headers) as http:
                (task,) = http.get(tasks).json()["items"]
            assert task["status"] == "completed"
            assert SECRET not in gateway.log()


def test_the_pages_event_is_what_is_sent() -> None:
    from moorage.contract import AttentionKind, Notification, TaskStatus
    from moorage_plugins.webhook.sink import event_of

    sent = event_of(
        Notification("t:1:0", "t", "hash-folder", 1, 0, AttentionKind.TERMINAL, TaskStatus.COMPLETED, "admin",
                     "thread", "direct", "jobs")
    )  # fmt: skip
    shown = json.loads(block("json event"))
    assert shown["data"].keys() == sent["data"].keys()
    assert shown["type"] == sent["type"]
