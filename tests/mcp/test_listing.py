"""What a catalogue makes of odd listings: names, schemas, pages (TOOL-2, TOOL-3)."""

import asyncio
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.mcp_servers import SERVERS, context, gateway, http_server, remote, stdio

from moorage.contract import RoutingHint, RoutingHintProvider, ServerConfig, ToolCaller
from moorage_drivers.mcp.listing import MAX_PAGES
from moorage_drivers.mcp.naming import argument_aliases, visible_names

VISIBLE = re.compile(r"[A-Za-z0-9_-]{1,64}")


def hostile(name: str, mode: str, *args: str, **fields: Any) -> ServerConfig:
    return stdio(name, "hostile", mode, *args, **fields)


@pytest.mark.req("TOOL-2")
async def test_one_malformed_tool_costs_itself_only(tmp_path: Path) -> None:
    """C49."""
    async with gateway(tmp_path, hostile("s", "bad-tool")) as made:
        tools = await made.tools()
        assert set(tools) == {"s_good"}
        result = await made.context.service(ToolCaller).call("s", "good", {}, context=context(), phase="call")
        assert not result.is_error
        (state,) = await made.catalogue.servers()
        assert (state.state, state.tool_count) == ("ready", 1)
        assert any("'bad'" in warning and "inputSchema" in warning for warning in state.warnings)
        assert any("'null'" in warning for warning in state.warnings)


@pytest.mark.req("TOOL-2", "TOOL-3")
async def test_odd_schemas(tmp_path: Path) -> None:
    """C50."""
    async with gateway(tmp_path, hostile("s", "odd-schemas")) as made:
        tools = await made.tools()
        assert set(tools) == {"s_good", "s_bare", "s_nulls", "s_anything"}
        assert tools["s_bare"].input_schema["properties"] == {}
        assert tools["s_nulls"].input_schema["properties"] == {}
        assert tools["s_anything"].input_schema["properties"] == {"x": {}}
        native: Any = tools["s_nulls"].native
        assert native.args_schema["properties"] == {}
        (state,) = await made.catalogue.servers()
        assert len(state.warnings) == 6


@pytest.mark.req("TOOL-2")
@pytest.mark.parametrize(("mode", "state", "count"), [("null-tools", "ready", 0), ("no-tools", "ready", 0)])
async def test_no_list_at_all(tmp_path: Path, mode: str, state: str, count: int) -> None:
    """C49."""
    async with gateway(tmp_path, hostile("s", mode)) as made:
        assert await made.tools() == {}
        (found,) = await made.catalogue.servers()
        assert (found.state, found.tool_count) == (state, count)


@pytest.mark.req("TOOL-2")
@pytest.mark.parametrize(
    ("mode", "count", "warns"),
    [("two-pages", 54, None), ("same-cursor", 1, "repeats a cursor"), ("endless", MAX_PAGES, "too long")],
)
async def test_pages(tmp_path: Path, mode: str, count: int, warns: str | None) -> None:
    """C52."""
    async with gateway(tmp_path, hostile("s", mode)) as made:
        assert len(await made.tools()) == count
        (state,) = await made.catalogue.servers()
        if warns is None:
            assert state.warnings == ()
        else:
            assert any(warns in warning for warning in state.warnings)


@pytest.mark.req("TOOL-3")
async def test_visible_names_are_safe_stable_unique_and_mapped(tmp_path: Path) -> None:
    """C53."""
    servers = (
        hostile("my-server.v2", "names", tool_name_prefix=True),
        hostile("raw", "names", tool_name_prefix=False),
        hostile("x" * 60, "names"),
    )
    async with gateway(tmp_path, *servers) as made:
        tools = await made.catalogue.tools(context())
        names = [tool.name for tool in tools]
        assert len(set(names)) == len(names)
        assert all(VISIBLE.fullmatch(name) for name in names)
        assert all(tool.native.name == tool.name for tool in tools)  # type: ignore[attr-defined]
        by_raw = {(tool.server, tool.raw_name): tool.name for tool in tools}
        assert by_raw["raw", "_5x"] == "_5x"
        assert by_raw["raw", "n" * 64] == "n" * 64
        assert by_raw["raw", "n" * 65] != "n" * 64
        assert by_raw["raw", "tool_search"] != "tool_search"
        assert ("raw", "工具") in by_raw
        assert not any("SYSTEM" in name or "tools>" in raw for (_, raw), name in by_raw.items())
        await made.catalogue.reset()
        again = await made.catalogue.tools(context())
        assert {(tool.server, tool.raw_name): tool.name for tool in again} == by_raw
        warnings = [w for state in await made.catalogue.servers() for w in state.warnings]
        assert any("refused" in warning for warning in warnings)
        assert any(by_raw["raw", "a.b"] in warning for warning in warnings)
        assert not any("\n" in warning for warning in warnings)
        odd = next(tool for tool in tools if (tool.server, tool.raw_name) == ("raw", "工具"))
        message = await odd.native.ainvoke({"type": "tool_call", "id": "1", "name": odd.name, "args": {}})  # type: ignore[attr-defined]
        assert message.status == "success"


@pytest.mark.req("TOOL-3")
def test_a_collision_is_reported_and_nobody_wins() -> None:
    tools = [(("a", "search"), False), (("b", "search"), False), (("a_b", "c"), True), (("a", "b_c"), True)]
    names = visible_names(tools)
    assert len(set(names.visible.values())) == 4
    assert not {"search", "a_b_c"} & set(names.visible.values())
    assert set(names.warnings) == {"a", "b", "a_b"}
    assert "'b'" in names.warnings["a"][0]
    assert visible_names(reversed(tools)).visible == names.visible


@pytest.mark.req("TOOL-3")
async def test_arguments_that_injection_would_swallow_arrive(tmp_path: Path) -> None:
    async with gateway(tmp_path, hostile("s", "plain")) as made:
        tool = (await made.tools())["s_echo"]
        assert set(tool.input_schema["properties"]) == {"runtime_", "config_", "x"}
        args = {"runtime_": "py", "config_": {"a": 1}, "x": None}
        native: Any = tool.native
        message = await native.ainvoke({"type": "tool_call", "id": "1", "name": "s_echo", "args": args})
        assert message.artifact["structured_content"] == {"runtime": "py", "config": {"a": 1}, "x": None}
    assert argument_aliases({"runtime": {}, "runtime_": {}}) == {"runtime__": "runtime"}


@pytest.mark.req("ROUTE-2")
async def test_routing_is_kept_with_the_tool(tmp_path: Path) -> None:
    class Hints:
        def hint(self, server: ServerConfig, raw_name: str) -> RoutingHint | None:
            return RoutingHint("prefer", 7, ("sql",)) if raw_name == "good" else None

    async with gateway(tmp_path, hostile("s", "bad-tool")) as made:
        made.context.provide(RoutingHintProvider, Hints())
        tool = (await made.tools())["s_good"]
        hint = {"mode": "prefer", "priority": 7, "keywords": ["sql"]}
        assert tool.metadata["moorage_routing"] == hint
        assert tool.native.metadata["moorage_routing"] == hint  # type: ignore[attr-defined]


@pytest.mark.req("TOOL-2", "TOOL-7", "CONF-4")
async def test_a_changed_server_is_listed_anew_and_the_others_are_not(tmp_path: Path) -> None:
    log = tmp_path / "log"
    env = {"HOSTILE_LOG": str(log)}
    a, b = hostile("a", "many", "2", env=env), hostile("b", "bad-tool", env=env)
    async with gateway(tmp_path, a, b) as made:
        first = await made.catalogue.tools(context())
        assert await made.catalogue.tools(context()) is first
        made.extensions.set(a, b)
        assert await made.catalogue.tools(context()) is first
        assert log.read_text().count("start") == 2
        made.extensions.set(hostile("a", "many", "3", env=env), b)
        assert set(await made.tools()) == {"a_t0", "a_t1", "a_t2", "b_good"}
        assert log.read_text().count("start") == 3
        await made.catalogue.reset()
        await made.tools()
        assert log.read_text().count("start") == 5
        states = await made.catalogue.servers(probe=True)
        assert [state.state for state in states] == ["ready", "ready"]
        assert log.read_text().count("start") == 7


@pytest.mark.req("TOOL-2", "TOOL-8")
async def test_a_hanging_server_delays_nobody_twice_and_comes_back(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    hanging = hostile("hang", "silent", session_init_timeout_seconds=1.5)
    dark = remote("dark", "http://127.0.0.1:9/mcp")
    async with gateway(tmp_path, hanging, dark, hostile("ok", "bad-tool")) as made:
        started = loop.time()
        assert set(await made.tools()) == {"ok_good"}
        assert loop.time() - started < 5
        started = loop.time()
        assert set(await made.tools()) == {"ok_good"}
        assert loop.time() - started < 1
        with http_server("hostile_http") as url:
            made.extensions.set(hanging, remote("dark", url), hostile("ok", "bad-tool"))
            assert "dark_ok" in await made.tools()


@pytest.mark.req("TOOL-2")
async def test_an_unreachable_server_is_found_once_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moorage_drivers.mcp.catalogue.FIRST_RETRY_SECONDS", 0.0)
    script = tmp_path / "later.py"
    server = hostile("s", "bad-tool")
    later = replace(server, args=(str(script), "bad-tool"))
    async with gateway(tmp_path, later) as made:
        assert await made.tools() == {}
        folder, real = str(SERVERS), server.args[0]
        script.write_text(
            f"import runpy, sys\nsys.path[0] = {folder!r}\nrunpy.run_path({real!r}, run_name='__main__')"
        )
        async with asyncio.timeout(10):
            while not await made.tools():
                await asyncio.sleep(0.05)
