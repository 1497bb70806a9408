"""The demo's two processes: the example MCP server and the gateway."""

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from moorage.contract import MoorageError


class DemoFailed(MoorageError):
    """A step of the demo did not turn out as it must."""


def stop(process: subprocess.Popen[str]) -> None:
    """End a process and take its exit status, gently at first."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


@contextmanager
def jobs_server(log: Path) -> Iterator[str]:
    """Run the example server on a free port; yields its URL."""
    with log.open("w") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "moorage_drivers.example_server", "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
    try:
        url = process.stdout.readline().strip() if process.stdout else ""
        if not url:
            raise DemoFailed(f"the example server did not start: {log.read_text()[-2000:]}")
        yield url
    finally:
        stop(process)


class DemoGateway:
    """A gateway on a home of its own, which can be killed and started again on the same state."""

    def __init__(self, home: Path, *, jobs_url: str) -> None:
        self.home = home
        self.admin_key = f"demo-{secrets.token_urlsafe(24)}"
        self.url = ""
        self.process: subprocess.Popen[str] | None = None
        config = {
            "mcpServers": {
                "jobs": {
                    "type": "http",
                    "url": jobs_url,
                    "task_toolsets": [
                        {
                            "name": "hash-folder",
                            "submit_tool": "hash_folder",
                            "status_tool": "hash_status",
                            "cancel_tool": "hash_cancel",
                        }
                    ],
                }
            }
        }
        self.config = home / "extensions_config.json"
        self.config.write_text(json.dumps(config, indent=2) + "\n")

    def start(self) -> None:
        """Start the process and wait until it is ready."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MOORAGE_")}
        environment |= {
            "MOORAGE_HOME": str(self.home),
            "MOORAGE_ADMIN_KEY": self.admin_key,
            "MOORAGE_EXTENSIONS_CONFIG_PATH": str(self.config),
            "MOORAGE_TASKS_POLL_INTERVAL_SECONDS": "0.5",
            # A killed gateway's leases run out after this time; short, so that the demo need not wait.
            "MOORAGE_TASKS_LEASE_SECONDS": "3",
        }
        with (self.home / "gateway.log").open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "moorage", "serve", "--port", "0", "--json"],
                cwd=self.home,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        line = self.process.stdout.readline() if self.process.stdout else ""
        try:
            self.url = str(json.loads(line)["url"])
        except (ValueError, KeyError):
            stop(self.process)
            raise DemoFailed(f"the gateway did not start:\n{self.log()[-2000:]}") from None

    def kill(self) -> int:
        """SIGKILL: no handler runs, nothing is flushed. Returns the exit status."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        stop(self.process)
        return self.process.returncode

    def close(self) -> None:
        """Stop it, if it runs."""
        if self.process is not None:
            stop(self.process)

    def log(self) -> str:
        """What it has logged so far."""
        path = self.home / "gateway.log"
        return path.read_text() if path.exists() else ""

    def client(self) -> httpx.Client:
        """An HTTP client with the admin key."""
        return httpx.Client(
            base_url=self.url, headers={"Authorization": f"Bearer {self.admin_key}"}, timeout=30
        )


def deadline(seconds: float, what: str) -> Iterator[float]:
    """Yields the seconds gone by until the deadline has passed; then raises `DemoFailed`."""
    started = time.monotonic()
    while (gone := time.monotonic() - started) < seconds:
        yield gone
        time.sleep(0.2)
    raise DemoFailed(f"{what} did not happen within {seconds:g} seconds")
