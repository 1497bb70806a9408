"""``mcpInterceptors``: local code in the chain, or no start (PLUG-9)."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.calls import OK, Server, built, tool_call
from support.credential_parts import gateway_context

from moorage.calls.chain import BuiltInterceptor, InterceptorChain, refusing
from moorage.calls.local import load_local_interceptors
from moorage.contract import (
    PRECEDENCE_HEADERS_FROM_CONTEXT,
    ConfigError,
    CredentialDenied,
    ExtensionsSnapshot,
    Next,
    ToolCall,
    ToolResult,
)

pytestmark = pytest.mark.req("PLUG-9")

CODE = """
from moorage.contract import InterceptorSpec

def adds(name, value):
    async def interceptor(call, follow):
        return await follow(call.with_header(name, value, source="local"))
    return interceptor

def plain():
    return adds("X-Plain", "1")

def with_context(context):
    return adds("X-Replica", context.replica_id)

def early():
    made = adds("Authorization", "early")
    made.precedence = 1
    return made

def specified():
    return InterceptorSpec("mine", 5000, lambda context: adds("X-Spec", "1"), phases=frozenset({"status"}))

class Group:
    @staticmethod
    def nested():
        return adds("X-Nested", "1")

def nothing():
    return None

def fails():
    raise RuntimeError("no licence")

def exits():
    raise SystemExit(3)

not_callable = 17

def odd_precedence():
    made = adds("X", "1")
    made.precedence = "high"
    return made
"""


@pytest.fixture
def module(tmp_path: Path) -> Iterator[str]:
    """Local code beside the config file; its name."""
    name = f"local_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(CODE)
    before = list(sys.path)
    yield name
    sys.path[:] = before
    sys.modules.pop(name, None)


def loaded(home: Path, *paths: str) -> list[BuiltInterceptor]:
    snapshot = ExtensionsSnapshot(path=home / "extensions_config.json", interceptors=paths)
    context: Any = SimpleNamespace(extensions=SimpleNamespace(current=lambda: snapshot), replica_id="test")
    return load_local_interceptors(context)


async def test_local_code_runs_after_the_built_in_ones_unless_it_says_otherwise(
    tmp_path: Path, module: str
) -> None:
    async def builtin(call: ToolCall, follow: Next) -> ToolResult:
        return await follow(call.with_header("Authorization", "builtin", source="t"))

    local = loaded(tmp_path, *(f"{module}:{n}" for n in ("plain", "with_context", "early", "Group.nested")))
    server = Server()
    tested = InterceptorChain([*local, built(builtin, precedence=PRECEDENCE_HEADERS_FROM_CONTEXT)])
    assert await tested.run(tool_call(), server) is OK
    expected = {"Authorization": "builtin", "X-Plain": "1", "X-Replica": "test", "X-Nested": "1"}
    assert server.headers == expected
    assert local[0].plugin == f"{module}:plain"


async def test_a_spec_says_more(tmp_path: Path, module: str) -> None:
    tested, server = InterceptorChain(loaded(tmp_path, f"{module}:specified")), Server()
    await tested.run(tool_call(), server)
    assert server.headers == {}
    await tested.run(tool_call(phase="status"), server)
    assert server.headers == {"X-Spec": "1"}


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("{}:absent", "AttributeError"),
        ("{}:fails", "no licence"),
        ("{}:exits", "SystemExit"),
        ("{}:nothing", "which is no interceptor"),
        ("{}:not_callable", "TypeError"),
        ("{}:odd_precedence", "whole number"),
        ("{}", "module:builder"),
        (":plain", "module:builder"),
        ("no_such_module_anywhere:x", "ModuleNotFoundError"),
    ],
)
def test_what_cannot_be_loaded_fails_the_start(tmp_path: Path, module: str, path: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        loaded(tmp_path, f"{module}:plain", path.format(module))
    assert "mcpInterceptors" in str(caught.value)
    assert path.format(module) in str(caught.value)


def test_the_same_path_twice_is_refused(tmp_path: Path, module: str) -> None:
    with pytest.raises(ConfigError, match="twice"):
        loaded(tmp_path, f"{module}:plain", f"{module}:plain")


def test_nothing_is_listed(tmp_path: Path) -> None:
    assert loaded(tmp_path) == []
    assert load_local_interceptors(gateway_context(tmp_path)) == []


@pytest.mark.req("PLUG-7", "CRED-2")
async def test_an_interceptor_that_could_not_be_built_leaves_no_gap() -> None:
    async def never(call: ToolCall, follow: Next) -> ToolResult:
        return await follow(call)

    spec = built(never, name="oauth").spec
    server = Server()
    with pytest.raises(CredentialDenied, match="'oauth' of plugin 'some-plugin' could not be built"):
        await InterceptorChain([refusing(spec, "some-plugin")]).run(tool_call(), server)
    assert not server.calls
