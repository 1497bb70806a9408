"""The launch policy as any author's validator: the kit's suite, and the generated data (LAUNCH-7)."""

import importlib.util
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from moorage.contract import LaunchRequest, LaunchValidatorSpec
from moorage.testing import LaunchValidatorConformance
from moorage_plugins.launch_policy import plugin

ROOT = Path(__file__).parents[2]
GENERATOR = ROOT / "tools" / "launcher_grammars.py"


class TestCommands(LaunchValidatorConformance):
    def spec(self) -> LaunchValidatorSpec:
        return next(one for one in plugin.moorage_launch_validators() if one.name == "stdio_commands")

    def allowed(self) -> Sequence[LaunchRequest]:
        return (
            LaunchRequest("files", "stdio", command="npx", args=("-y", "server-files", "/data")),
            LaunchRequest("time", "stdio", command="uvx", args=("server-time",), env={"TZ": "UTC"}),
            LaunchRequest("wiki", "http", url="http://169.254.169.254/"),
        )

    def refused(self) -> Sequence[LaunchRequest]:
        return (
            LaunchRequest("shell", "stdio", command="bash", args=("-c", "id")),
            LaunchRequest("call", "stdio", command="npx", args=("-yc", "id")),
            LaunchRequest("local", "stdio", command="uvx", args=("--from", "./x", "x")),
            LaunchRequest("loader", "stdio", command="npx", args=("s",), env={"ld_preload": "/tmp/x.so"}),
            LaunchRequest("folder", "stdio", command="npx", args=("s",), cwd="/tmp"),
        )


class TestUrls(LaunchValidatorConformance):
    def spec(self) -> LaunchValidatorSpec:
        return next(one for one in plugin.moorage_launch_validators() if one.name == "remote_urls")

    def allowed(self) -> Sequence[LaunchRequest]:
        return (LaunchRequest("wiki", "http", url="https://wiki.example/mcp"),)

    def refused(self) -> Sequence[LaunchRequest]:
        return (
            LaunchRequest("meta", "sse", url="http://169.254.169.254/"),
            LaunchRequest("file", "http", url="file:///etc/passwd"),
        )


@pytest.mark.req("LAUNCH-7")
def test_the_grammars_are_what_the_installed_launchers_say() -> None:
    subprocess.run([sys.executable, str(GENERATOR), "--check"], check=True, timeout=60)
    spec = importlib.util.spec_from_file_location("launcher_grammars", GENERATOR)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text: str = module.document()
    assert '"version": "npm ' in text
    assert '"version": "uv ' in text
