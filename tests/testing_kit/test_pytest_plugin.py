"""The pytest plugin as a plugin author gets it: another process, nothing but the entry point."""

import subprocess
import sys
from pathlib import Path

import pytest

# Other plugins of this environment, which cost seconds a start and are not what is tested here.
STRANGERS = ("schemathesis", "langsmith_plugin", "hypothesispytest", "anyio", "asyncio", "faker", "xdist")


def run_pytest(folder: Path, source: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    (folder / "test_it.py").write_text(source)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", *arguments]
        + [f"-pno:{name}" for name in STRANGERS],
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=120,
        check=False,
    )


@pytest.mark.req("DX-2")
def test_fixtures_are_there_without_a_conftest(tmp_path: Path) -> None:
    done = run_pytest(
        tmp_path,
        """
from moorage.contract import InterceptorSpec, hookimpl

async def interceptor(call, follow):
    return await follow(call)

class Plugin:
    @hookimpl
    def moorage_credential_interceptors(self):
        return (InterceptorSpec("mine", 4000, lambda gateway: interceptor),)

def test_host(moorage_host):
    host = moorage_host(Plugin())
    assert [one.spec.name for one in host.interceptors()] == ["mine"]
    assert [report.name for report in host.reports] == ["Plugin"]

def test_context(moorage_context, moorage_clock, tmp_path):
    assert moorage_context.home == tmp_path
    before = moorage_context.clock.now()
    moorage_clock.move(60)
    assert (moorage_context.clock.now() - before).total_seconds() == 60
""",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


@pytest.mark.req("DX-2")
def test_a_failure_names_requirement_rule_and_what_happened(tmp_path: Path) -> None:
    done = run_pytest(
        tmp_path,
        """
from moorage.contract import LaunchRequest, LaunchValidatorSpec
from moorage.testing import LaunchValidatorConformance

class Lax:
    def validate(self, request):
        return None

class TestLax(LaunchValidatorConformance):
    def spec(self):
        return LaunchValidatorSpec("lax", lambda gateway: Lax())
    def allowed(self):
        return [LaunchRequest("s", "stdio", command="npx")]
    def refused(self):
        return [LaunchRequest("s", "stdio", command="rm")]
""",
    )
    assert done.returncode == 1
    assert "1 failed, 8 passed" in done.stdout, done.stdout
    assert "LAUNCH-1: what must be refused is refused, by raising LaunchRefused" in done.stdout
    assert "but stdio 'rm' came to None" in done.stdout


@pytest.mark.req("DX-2")
def test_what_does_not_concern_a_plugin_is_skipped_with_the_reason(tmp_path: Path) -> None:
    done = run_pytest(
        tmp_path,
        """
from moorage.contract import InterceptorSpec
from moorage.testing import InterceptorConformance

async def interceptor(call, follow):
    return await follow(call.with_header("X-Region", "eu", source="region"))

class TestRegion(InterceptorConformance):
    def spec(self):
        return InterceptorSpec("region", 4000, lambda gateway: interceptor)
    def expects(self, user):
        return {"X-Region": "eu"}
""",
        "-rs",
    )
    assert done.returncode == 0, done.stdout
    assert "it denies no call (refused)" in done.stdout
    assert "3 skipped" in done.stdout, done.stdout


@pytest.mark.req("DX-2", "PLUG-8")
def test_unused_the_plugin_imports_nothing_of_ours(tmp_path: Path) -> None:
    done = run_pytest(
        tmp_path,
        """
import sys

def test_nothing():
    ours = {name for name in sys.modules if name.split(".")[0].startswith("moorage")}
    assert ours == {"moorage", "moorage.testing", "moorage.testing.plugin"}
    assert not {"pydantic", "typer", "rich"} & set(sys.modules)
""",
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.req("DX-2")
def test_the_gateway_fixture_serves_from_a_temporary_home(tmp_path: Path) -> None:
    done = run_pytest(
        tmp_path,
        """
import json
import urllib.request

def test_gateway(moorage_gateway, tmp_path):
    gateway = moorage_gateway({"mcpServers": {}})
    request = urllib.request.Request(gateway.url + "/api/plugins", headers=gateway.headers)
    with urllib.request.urlopen(request) as answer:
        names = {plugin["name"] for plugin in json.load(answer)["items"]}
    assert {"sql", "mcp", "api"} <= names
    assert gateway.home.is_relative_to(tmp_path)
""",
    )
    assert done.returncode == 0, done.stdout + done.stderr
