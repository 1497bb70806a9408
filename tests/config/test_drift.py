"""What a task-enabled server cannot change without a restart (TASK-18, ADMIN-5)."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.extensions import SECTION_SET, Extensions

from moorage.config import ConfigEditor, restart_required
from moorage.contract import ExtensionsSnapshot

TASKS = frozenset({"task_toolsets"})
TOOLSETS = [{"name": "n", "submit_tool": "a", "status_tool": "b", "label": "shown"}]
TASKED: dict[str, Any] = {
    "url": "https://h/mcp",
    "headers": {"A": "$T"},
    "task_toolsets": TOOLSETS,
    "tools": {"raw": {"routing": {"mode": "prefer"}}},
}
PLAIN: dict[str, Any] = {"command": "npx", "args": ["srv"]}


@pytest.fixture
def config(tmp_path: Path) -> Extensions:
    config = Extensions(tmp_path, {"T": "token"})
    config.write({"t": TASKED, "p": PLAIN}, mcpInterceptors=["m:b"])
    return config


def drift(
    config: Extensions, startup: ExtensionsSnapshot, servers: dict[str, Any]
) -> dict[str, tuple[str, ...]]:
    config.write(servers, mcpInterceptors=["m:b"])
    current = config.file.current()
    return restart_required(startup, current.servers, SECTION_SET, TASKS, interceptors=current.interceptors)


@pytest.mark.req("TASK-18")
@pytest.mark.parametrize(
    ("change", "keys"),
    [
        ({}, ()),
        ({"url": "https://h/other"}, ("url",)),
        ({"type": "sse"}, ("type",)),
        ({"headers": {"A": "$T", "B": "1"}}, ("headers.B",)),
        ({"tool_call_timeout": 5}, ("tool_call_timeout",)),
        ({"session_init_timeout": None}, ("session_init_timeout",)),
        ({"user_auth": {"users": {"alice": "x"}}}, ("user_auth",)),
        ({"task_toolsets": [{**TOOLSETS[0], "submit_tool": "c"}]}, ("task_toolsets",)),
        ({"task_toolsets": None}, ("task_toolsets",)),
        ({"task_toolsets": [{**TOOLSETS[0], "label": "other"}]}, ()),
        ({"routing": {"mode": "prefer"}, "tools": {"raw": {"routing": {"priority": 9}}}}, ()),
        ({"tool_name_prefix": False, "description": "d"}, ()),
        ({"enabled": False, "url": "https://elsewhere"}, ()),
    ],
)
def test_runtime_and_binding_are_frozen_and_presentation_is_not(
    config: Extensions, change: dict[str, Any], keys: tuple[str, ...]
) -> None:
    startup = config.file.current()
    expected = {"t": keys} if keys else {}
    assert drift(config, startup, {"t": {**TASKED, **change}, "p": {**PLAIN, "args": ["other"]}}) == expected


@pytest.mark.req("TASK-18")
def test_servers_that_come_and_go(config: Extensions) -> None:
    startup = config.file.current()
    assert drift(config, startup, {"p": PLAIN}) == {}
    assert drift(config, startup, {"t": TASKED, "new": TASKED, "q": PLAIN}) == {"new": ("task_toolsets",)}
    assert drift(config, startup, {"t": TASKED, "p": {"url": "http://p", "task_toolsets": TOOLSETS}}) == {
        "p": ("type", "command", "args", "url", "task_toolsets")
    }


@pytest.mark.req("TASK-18")
def test_the_interceptor_list_concerns_every_task_enabled_server(config: Extensions) -> None:
    startup = config.file.current()
    config.write({"t": TASKED, "p": PLAIN}, mcpInterceptors=["other:b"])
    current = config.file.current()
    result = restart_required(startup, current.servers, SECTION_SET, TASKS, interceptors=current.interceptors)
    assert result == {"t": ("mcpInterceptors",)}


@pytest.mark.req("TASK-18")
def test_servers_that_have_tasks_without_a_section(config: Extensions) -> None:
    startup = config.file.current()
    config.write({"t": TASKED, "p": {**PLAIN, "args": ["other"]}})
    servers = config.file.current().servers
    assert restart_required(startup, servers, SECTION_SET, TASKS, task_servers=frozenset({"p"})) == {
        "p": ("args",)
    }


async def changed(config: Extensions, startup: ExtensionsSnapshot, change: Any) -> dict[str, tuple[str, ...]]:
    editor = ConfigEditor(config.file)
    body = json.loads(json.dumps((await editor.view()).config))
    change(body["mcpServers"])
    return (await editor.replace(body, dry_run=True)).plan.restart_required(startup, TASKS)


@pytest.mark.req("ADMIN-5")
async def test_a_change_over_http_counts_only_for_what_it_does_itself(config: Extensions) -> None:
    startup = config.file.current()
    url = {"url": "https://h/other"}
    assert await changed(config, startup, lambda s: s["t"].update(url)) == {"t": ("url",)}
    assert await changed(config, startup, lambda s: s["t"].update(task_toolsets=None)) == {
        "t": ("task_toolsets",)
    }
    assert await changed(config, startup, lambda s: s["t"].update(enabled=False)) == {}
    assert await changed(config, startup, lambda s: s["t"].update(description="d")) == {}
    assert await changed(config, startup, lambda s: s.pop("t")) == {}
    assert (
        await changed(config, startup, lambda s: s.update(new={"url": "http://n", "task_toolsets": TOOLSETS}))
        == {}
    )
    # Somebody edited the file: the same body again, a presentation change and the way back are fine.
    config.write({"t": {**TASKED, **url}, "p": PLAIN})
    assert await changed(config, startup, lambda s: None) == {}
    assert await changed(config, startup, lambda s: s["t"].update(description="d")) == {}
    assert await changed(config, startup, lambda s: s["t"].update(url="https://h/mcp")) == {}
    assert await changed(config, startup, lambda s: s["t"].update(url="https://h/third")) == {"t": ("url",)}


@pytest.mark.req("ADMIN-5", "CONF-7")
async def test_a_server_that_was_refused_at_start_can_be_repaired(config: Extensions) -> None:
    config.write({"t": {**TASKED, "tool_call_timeout": 0}})
    startup = config.file.current()
    assert set(startup.refused) == {"t"}
    assert await changed(config, startup, lambda s: s["t"].update(tool_call_timeout=5)) == {}
    editor = ConfigEditor(config.file)
    plan = (await editor.replace({"mcpServers": {"t": {"tool_call_timeout": 5}}})).plan
    assert plan.new_task_servers(startup, TASKS) == ("t",)
