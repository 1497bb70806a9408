"""README's walk by hand, executed: its own commands, on free ports."""

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).parents[2]


def console_blocks(heading: str) -> list[list[str]]:
    """The commands of each console block below a heading."""
    section = (ROOT / "README.md").read_text().split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    blocks = re.findall(r"```console\n(.*?)```", section, re.DOTALL)
    return [[line[2:] for line in block.splitlines() if line.startswith("$ ")] for block in blocks]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Walk:
    """Runs README's lines where they stand, with ports, key and interpreter put in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.jobs_port, self.port = free_port(), free_port()
        config = json.loads((ROOT / "examples/folder-jobs/extensions_config.json").read_text())
        url = config["mcpServers"]["jobs"]["url"]
        assert ":8931/" in url
        config["mcpServers"]["jobs"]["url"] = url.replace("8931", str(self.jobs_port))
        (folder / "examples/folder-jobs").mkdir(parents=True)
        (folder / "examples/folder-jobs/extensions_config.json").write_text(json.dumps(config))
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("MOORAGE_")}

    def ready(self, command: str) -> str:
        command = command.replace("uv run python", sys.executable)
        command = command.replace("uv run moorage", f"{sys.executable} -m moorage")
        return command.replace("8930", str(self.port))

    def run(self, script: str) -> str:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    @contextmanager
    def served(self, command: str, more: str, until: str) -> Iterator[str]:
        """Run a command of a terminal of its own; yields its output up to the line that holds ``until``."""
        process = subprocess.Popen(
            ["bash", "-c", f"{self.ready(command)} {more} 2>&1"],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,
        )
        assert process.stdout is not None
        timer = threading.Timer(60, process.kill)
        timer.start()
        try:
            said = ""
            for line in process.stdout:
                said += line
                if until in line:
                    break
            assert until in said, said
            yield said
        finally:
            timer.cancel()
            os.killpg(process.pid, 15)
            process.stdout.close()
            process.wait(20)


@pytest.mark.req("OPS-1", "API-2", "API-3", "ORD-2")
def test_a_stranger_follows_the_readme(tmp_path: Path) -> None:
    start_jobs, start_gateway, by_curl, by_command = console_blocks("Try it by hand")
    walk = Walk(tmp_path)
    with (
        walk.served(start_jobs[0], f"--port {walk.jobs_port}", "/mcp"),
        walk.served(start_gateway[0], f"--port {walk.port}", "Admin key") as said,
    ):
        key = re.search(r"^Admin key, shown this once: (\S+)$", said, re.MULTILINE)
        assert key, said
        url = f"http://127.0.0.1:{walk.port}"
        wait_until_ready(url)
        assert httpx.get(f"{url}/api/mcp/tools").status_code == 401
        assert by_curl[0].startswith("export KEY=")
        lines = [f"export KEY={key[1]}", *map(walk.ready, by_curl[1:])]
        answers = walk.run("\necho\n".join(lines)).splitlines()
        (task,) = json.loads(answers[-1])["items"]
        assert task["task_name"] == "hash-folder"
        assert task["status"] in ("submitted", "working")

        walk.run(walk.ready(by_command[0]))
        after = json.loads(walk.run("\n".join([*lines[:1], f"THREAD={thread_of(url, key[1])}", lines[-1]])))
        assert [one["status"] for one in after["items"]] == ["completed"]


def thread_of(url: str, key: str) -> str:
    found = httpx.post(f"{url}/api/threads/search", json={}, headers={"X-Api-Key": key}).json()
    assert len(found) == 1, found
    return str(found[0]["thread_id"])


def wait_until_ready(url: str) -> None:
    end = time.monotonic() + 30
    while True:
        try:
            if httpx.get(f"{url}/readyz").status_code == 200:
                return
        except httpx.TransportError:
            pass
        assert time.monotonic() < end, "the gateway is not ready"
        time.sleep(0.1)
