"""The demo's two processes: the example MCP server and the gateway."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from moorage.contract import MoorageError
from moorage.testing.process import GatewayProcess, stop

TASK_TOOLSET = {
    "name": "hash-folder",
    "submit_tool": "hash_folder",
    "status_tool": "hash_status",
    "cancel_tool": "hash_cancel",
}


class DemoFailed(MoorageError):
    """A step of the demo did not turn out as it must."""


@contextmanager
def jobs_server(log: Path) -> Iterator[str]:
    """Run the example server on a free port; yields its URL."""
    with log.open("w") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "moorage_drivers.example_server", "--port", "0"],
            stdin=subprocess.DEVNULL,
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


def demo_gateway(home: Path, jobs_url: str) -> GatewayProcess:
    """A gateway with the example server; not started yet."""
    return GatewayProcess(
        home,
        config={"mcpServers": {"jobs": {"type": "http", "url": jobs_url, "task_toolsets": [TASK_TOOLSET]}}},
        environment={
            "MOORAGE_TASKS_POLL_INTERVAL_SECONDS": "0.5",
            # A killed gateway's leases run out after this time; short, so that the demo need not wait.
            "MOORAGE_TASKS_LEASE_SECONDS": "3",
        },
    )


def client(gateway: GatewayProcess) -> httpx.Client:
    """An HTTP client with the gateway's admin key."""
    return httpx.Client(base_url=gateway.url, headers=gateway.headers, timeout=30)


def deadline(seconds: float, what: str) -> Iterator[float]:
    """Yields the seconds gone by until the deadline has passed; then raises `DemoFailed`."""
    started = time.monotonic()
    while (gone := time.monotonic() - started) < seconds:
        yield gone
        time.sleep(0.2)
    raise DemoFailed(f"{what} did not happen within {seconds:g} seconds")
