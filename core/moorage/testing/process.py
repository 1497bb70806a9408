"""A gateway as a process of its own, for tests and demonstrations (DX-2)."""

import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from moorage.contract.errors import MoorageError

STOP_TIMEOUT_SECONDS = 15.0


class ProcessFailed(MoorageError):
    """A process did not start, or not as expected; the message quotes the end of its log."""


def stop(process: subprocess.Popen[str]) -> int:
    """End a process, gently at first, and take its exit status."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
    status = process.wait()
    if process.stdout is not None:
        process.stdout.close()
    return status


class GatewayProcess:
    """``moorage serve`` on a home of its own, which can be killed and started again on the same state.

    ``config`` is the content of the extensions config; ``environment`` adds ``MOORAGE_*`` settings. Other
    ``MOORAGE_*`` variables of this process are not inherited. Use it as a context manager, or call
    `start` and `stop`.
    """

    def __init__(
        self,
        home: Path,
        *,
        config: Mapping[str, Any] | None = None,
        environment: Mapping[str, str] | None = None,
        python: str = sys.executable,
    ) -> None:
        self.home = home
        self.url = ""
        self.admin_key = f"test-{secrets.token_urlsafe(24)}"
        self.config_path = home / "extensions_config.json"
        self.log_path = home / "gateway.log"
        self.process: subprocess.Popen[str] | None = None
        self._environment = dict(environment or {})
        self._python = python
        home.mkdir(parents=True, exist_ok=True)
        if config is not None:
            self.config_path.write_text(json.dumps(config, indent=2) + "\n")
        elif not self.config_path.exists():
            self.config_path.write_text('{"mcpServers": {}}\n')

    def start(self) -> None:
        """Start it and wait until it listens; raises `ProcessFailed`."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MOORAGE_")}
        environment |= {
            "MOORAGE_HOME": str(self.home),
            "MOORAGE_ADMIN_KEY": self.admin_key,
            "MOORAGE_EXTENSIONS_CONFIG_PATH": str(self.config_path),
        }
        environment |= self._environment
        with self.log_path.open("a") as log:
            self.process = subprocess.Popen(
                [self._python, "-m", "moorage", "serve", "--port", "0", "--json"],
                cwd=self.home,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        try:
            self.url = str(json.loads(line)["url"])
        except (ValueError, KeyError, TypeError):
            status = self.stop()
            raise ProcessFailed(
                f"the gateway did not start (exit status {status}):\n{line}{self.log()[-4000:]}"
            ) from None

    @property
    def pid(self) -> int:
        """The process id; raises `ProcessFailed` where it was not started."""
        if self.process is None:
            raise ProcessFailed("the gateway was not started")
        return self.process.pid

    @property
    def headers(self) -> dict[str, str]:
        """Request headers with the admin key."""
        return {"Authorization": f"Bearer {self.admin_key}"}

    def kill(self) -> int:
        """SIGKILL: no handler runs, nothing is flushed. Returns the exit status."""
        if self.process is None:
            raise ProcessFailed("the gateway was not started")
        self.process.send_signal(signal.SIGKILL)
        return stop(self.process)

    def stop(self) -> int:
        """SIGTERM, then SIGKILL if it does not end. Returns the exit status; 0 where it never ran."""
        return stop(self.process) if self.process is not None else 0

    def log(self) -> str:
        """What it has logged so far."""
        return self.log_path.read_text() if self.log_path.exists() else ""

    def __enter__(self) -> "GatewayProcess":
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
