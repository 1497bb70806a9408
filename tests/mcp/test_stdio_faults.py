"""A stdio server that misbehaves in every way costs itself only, and leaves nothing behind (STDIO)."""

import asyncio
import json
import logging
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.mcp_servers import Gateway, context, gateway, group_members, stdio, until

from moorage.contract import (
    NotFound,
    ProtocolViolation,
    ServerConfig,
    ServerUnavailable,
    ToolCaller,
    ToolResult,
)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "hostile.log"
    path.touch()
    return path


def hostile(log: Path, mode: str = "plain", *args: str, name: str = "bad", **fields: Any) -> ServerConfig:
    env = {"HOSTILE_LOG": str(log), **fields.pop("env", {})}
    return stdio(name, "hostile", mode, *args, env=env, **fields)


async def call(
    made: Gateway,
    tool: str = "ok",
    arguments: dict[str, Any] | None = None,
    *,
    thread: str = "t1",
    **kwargs: Any,
) -> ToolResult:
    caller = made.context.service(ToolCaller)
    return await caller.call(
        kwargs.pop("server", "bad"),
        tool,
        arguments or {},
        context=context(kwargs.pop("user", "alice"), thread),
        phase=kwargs.pop("phase", "call"),
        **kwargs,
    )


def starts(log: Path) -> list[tuple[int, int]]:
    """(pid, process group) of every process that was started."""
    found = re.findall(r"^start (\d+) (\d+)$", log.read_text(), re.MULTILINE)
    return [(int(pid), int(group)) for pid, group in found]


async def group_gone(group: int) -> None:
    await until(lambda: not group_members(group), "the process group is gone")


async def process_gone(pid: int) -> None:
    await until(lambda: _state(pid) == "Z", "the process is gone")


async def nothing_left(log: Path) -> None:
    for _, group in starts(log):
        await group_gone(group)


@pytest.mark.req("STDIO-5", "TOOL-2", "TOOL-8")
@pytest.mark.parametrize(
    ("mode", "says"),
    [
        ("silent", "within 1 seconds"),
        ("wrong-id", "within 1 seconds"),
        ("list-never", "list its tools within 1 seconds"),
        ("list-error", "I have no tools for you"),
        ("bytes", "no UTF-8"),
        ("die-at-start", "status 3"),
        ("bad-initialize", "malformed"),
        ("old-version", "malformed|protocol version"),
        ("endless-line", "line of more than"),
    ],
)
async def test_a_server_that_cannot_be_listed_costs_itself_only(
    tmp_path: Path, log: Path, mode: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C11 (d), C44, C49."""
    monkeypatch.setattr("moorage_drivers.mcp.stdio.MAX_LINE_BYTES", 4_000_000)
    bad = hostile(
        log, mode, session_init_timeout_seconds=1.0 if mode in ("silent", "wrong-id", "list-never") else 20.0
    )
    async with gateway(tmp_path, bad, hostile(log, name="fine")) as made:
        async with asyncio.timeout(15):
            tools = await made.tools()
        assert {tool.server for tool in tools.values()} == {"fine"}
        bad_state, fine_state = await made.catalogue.servers()
        assert (bad_state.state, fine_state.state) == ("failed", "ready")
        assert re.search(says, bad_state.error or ""), bad_state.error
        assert "'bad'" in (bad_state.error or "")
        if not mode.startswith("list-"):
            with pytest.raises((ServerUnavailable, TimeoutError)):
                await call(made, timeout_seconds=2)
    await nothing_left(log)


@pytest.mark.req("STDIO-5", "CRED-9")
async def test_the_tail_of_its_stderr_is_bounded_and_redacted(tmp_path: Path, log: Path) -> None:
    server = hostile(log, "die-at-start", env={"MCP_API_KEY": "sk-very-secret-value"})
    async with gateway(tmp_path, server) as made:
        await made.tools()
        (state,) = await made.catalogue.servers()
        assert "no license for MCP_API_KEY=***" in (state.error or "")
        assert "very-secret" not in (state.error or "")
        assert len(state.error or "") < 1_500


@pytest.mark.req("STDIO-5")
@pytest.mark.parametrize("mode", ["banner", "flood-stderr"])
async def test_noise_is_no_fault(
    tmp_path: Path, log: Path, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    """C10, C11 (a) to (c), (e)."""
    with caplog.at_level(logging.WARNING):
        async with gateway(tmp_path, hostile(log, mode)) as made:
            assert "bad_ok" in await made.tools()
            for tool, text in (("flood", "fine"), ("junk_then_ok", "fine"), ("unicode", "a\u2028b\u0085c")):
                assert (await call(made, tool)).content[0]["text"] == text
    noise = [r for r in caplog.records if "no messages" in r.getMessage() and "'bad'" in r.getMessage()]
    assert noise
    assert len(noise) <= len(starts(log))


@pytest.mark.req("STDIO-5", "TASK-23")
@pytest.mark.parametrize("tool", ["surrogate", "list_result"])
async def test_a_reply_that_breaks_the_protocol_fails_its_call_at_once(
    tmp_path: Path, log: Path, tool: str
) -> None:
    """C11 (f)."""
    async with gateway(tmp_path, hostile(log)) as made:
        async with asyncio.timeout(5):
            with pytest.raises(ProtocolViolation, match="'bad'") as caught:
                await call(made, tool)
        if tool == "surrogate":
            assert caught.value.__dict__["reply"]["result"]["structuredContent"] == {"task_id": "R5"}
        await call(made)
        assert len(starts(log)) == 1


@pytest.mark.req("TASK-23")
async def test_a_reply_without_content_is_returned(tmp_path: Path, log: Path) -> None:
    async with gateway(tmp_path, hostile(log)) as made:
        result = await call(made, "no_content", phase="submit")
        assert result.structured == {"task_id": "R1", "status": "running"}
        assert (await call(made, "violate", phase="status")).structured == {"a": "no"}


@pytest.mark.req("STDIO-3")
async def test_a_dead_session_is_replaced_and_no_call_is_repeated(tmp_path: Path, log: Path) -> None:
    """C41."""
    async with gateway(tmp_path, hostile(log)) as made:
        other = (await call(made, thread="t2")).structured["pid"]
        first = (await call(made)).structured["pid"]
        async with asyncio.timeout(5):
            with pytest.raises(ServerUnavailable, match=r"Connection closed.*status 9") as caught:
                await call(made, "die")
        assert caught.value.sent
        second = (await call(made)).structured["pid"]
        assert second != first
        assert log.read_text().count("call die") == 1
        assert (await call(made, thread="t2")).structured["pid"] == other


@pytest.mark.req("STDIO-3")
async def test_all_calls_under_way_learn_of_the_death(tmp_path: Path, log: Path) -> None:
    """C41: two calls at once, and a late failure."""
    async with gateway(tmp_path, hostile(log)) as made:
        await call(made)
        waiting = [asyncio.create_task(call(made, "sleep")) for _ in range(3)]
        await until(lambda: log.read_text().count("call sleep") == 3, "all calls have begun")
        async with asyncio.timeout(5):
            with pytest.raises(ServerUnavailable):
                await call(made, "die")
            outcomes = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(o, ServerUnavailable) and "Connection closed" in str(o) for o in outcomes)
        await call(made)
        assert len(starts(log)) == 2


@pytest.mark.req("STDIO-3")
@pytest.mark.parametrize("tool", ["is_error", "rpc_error", "fake_closed", "no_such_tool", "sleep"])
async def test_what_is_no_death_keeps_the_session(tmp_path: Path, log: Path, tool: str) -> None:
    """C41."""
    async with gateway(tmp_path, hostile(log)) as made:
        first = (await call(made)).structured["pid"]
        try:
            result = await call(made, tool, timeout_seconds=0.3 if tool == "sleep" else None)
            assert tool == "no_such_tool" or result.is_error
        except TimeoutError:
            assert tool == "sleep"
        assert (await call(made)).structured["pid"] == first


@pytest.mark.req("STDIO-3")
async def test_a_server_that_keeps_dying_has_to_wait(tmp_path: Path, log: Path) -> None:
    async with gateway(tmp_path, hostile(log)) as made:
        for _ in range(3):
            with pytest.raises(ServerUnavailable, match="Connection closed"):
                await call(made, "die")
        with pytest.raises(ServerUnavailable, match=r"died 3 times within 30 seconds") as caught:
            await call(made)
        assert not caught.value.sent
        assert len(starts(log)) == 3
        await call(made, thread="t2")
        async with asyncio.timeout(10):
            while True:
                try:
                    await call(made)
                    break
                except ServerUnavailable:
                    await asyncio.sleep(0.1)
        assert len(starts(log)) == 5


@pytest.mark.req("STDIO-5", "TOOL-8")
@pytest.mark.parametrize("how", ["cancel", "own timeout", "server timeout"])
async def test_the_server_is_told_that_nobody_waits(tmp_path: Path, log: Path, how: str) -> None:
    """C46."""
    limit = 0.5 if how == "server timeout" else None
    async with gateway(tmp_path, hostile(log, tool_call_timeout_seconds=limit)) as made:
        await call(made)
        waiting = asyncio.create_task(
            call(made, "sleep", timeout_seconds=0.5 if how == "own timeout" else None)
        )
        await until(lambda: "call sleep" in log.read_text(), "the call has begun")
        if how == "cancel":
            waiting.cancel()
        with pytest.raises((TimeoutError, asyncio.CancelledError)):
            await waiting
        async with asyncio.timeout(2):
            await call(made)
        messages = [json.loads(line[4:]) for line in log.read_text().splitlines() if line.startswith("got ")]
        calls = [m["id"] for m in messages if m["method"] == "tools/call"]
        (told,) = [m["params"]["requestId"] for m in messages if m["method"] == "notifications/cancelled"]
        assert told == calls[1]
        assert len(starts(log)) == 1


@pytest.mark.req("STDIO-5", "TOOL-4")
@pytest.mark.parametrize("mode", ["stubborn", "grandchild"])
async def test_stubborn_groups_are_reaped_in_parallel(tmp_path: Path, log: Path, mode: str) -> None:
    """C45."""
    loop = asyncio.get_running_loop()
    async with gateway(tmp_path, hostile(log, mode)) as made:
        async with asyncio.timeout(20):
            await asyncio.gather(*(call(made, thread=f"t{n}") for n in range(6)))
        before = loop.time()
        await call(made)
        assert loop.time() - before < 1
        closing = loop.time()
    assert loop.time() - closing < 8
    assert len(starts(log)) == 6
    await nothing_left(log)
    for line in log.read_text().splitlines():
        if line.startswith("grandchild"):
            await process_gone(int(line.split()[1]))


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


@pytest.mark.req("STDIO-5")
async def test_the_child_gets_a_minimal_environment(
    tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C08."""
    monkeypatch.setenv("GATEWAY_DB_PASSWORD", "hunter2hunter2")
    monkeypatch.setenv("HOME", str(tmp_path))
    servers = [hostile(log, name="a"), hostile(log, name="b", env={"MY": "1"})]
    async with gateway(tmp_path, *servers) as made:
        for name in ("a", "b"):
            env = (await call(made, server=name)).structured["env"]
            assert {"PATH", "HOME", "TMPDIR", "TMP", "TEMP"} <= env.keys()
            assert "GATEWAY_DB_PASSWORD" not in env
            assert env.get("MY") == ("1" if name == "b" else None)


@pytest.mark.req("TOOL-4", "STDIO-6")
async def test_sessions_belong_to_one_user_and_thread(tmp_path: Path, log: Path) -> None:
    async with gateway(tmp_path, hostile(log)) as made:
        owners = [("a:b", "c"), ("a", "b-c"), ("a", "c"), ("a:b", "b-c")]
        pids = [(await call(made, user=user, thread=thread)).structured["pid"] for user, thread in owners]
        assert len(set(pids)) == 4
        again = [(await call(made, user=user, thread=thread)).structured["pid"] for user, thread in owners]
        assert again == pids
        await made.catalogue.close_thread("a", "c")
        assert not group_members(pids[2])
        assert (await call(made, user="a:b", thread="c")).structured["pid"] == pids[0]


@pytest.mark.req("TOOL-4")
async def test_concurrent_first_calls_share_one_creation(tmp_path: Path, log: Path) -> None:
    async with gateway(tmp_path, hostile(log)) as made:
        results = await asyncio.gather(*(call(made) for _ in range(10)))
        assert len({result.structured["pid"] for result in results}) == 1
        assert len(starts(log)) == 1


@pytest.mark.req("TOOL-4", "STDIO-3")
async def test_the_least_recently_used_session_makes_room_and_a_busy_one_never(
    tmp_path: Path, log: Path
) -> None:
    """C39 (a), C42."""
    settings = {"plugins.mcp": {"stdio_sessions": 2}}
    async with gateway(tmp_path, hostile(log), settings=settings) as made:
        pool = made.catalogue.sessions.pools.stdio
        await asyncio.gather(*(call(made, thread=f"t{n}") for n in range(6)))
        assert len(pool.keys()) <= 2
        busy = asyncio.create_task(call(made, "sleep", {"seconds": 2}, thread="busy"))
        await until(lambda: "call sleep" in log.read_text(), "the call has begun")
        for n in range(4):
            await call(made, thread=f"u{n}")
            assert len(pool.keys()) <= 2
        assert (await busy).content[0]["text"] == "woken"


@pytest.mark.req("TOOL-4")
async def test_when_all_are_busy_a_caller_waits_and_then_is_told(tmp_path: Path, log: Path) -> None:
    """C42."""
    settings = {"plugins.mcp": {"stdio_sessions": 1}}
    server = hostile(log, session_init_timeout_seconds=1.0)
    async with gateway(tmp_path, server, settings=settings) as made:
        busy = asyncio.create_task(call(made, "sleep", {"seconds": 30}, thread="busy"))
        await until(lambda: "call sleep" in log.read_text(), "the call has begun")
        with pytest.raises(ServerUnavailable, match="in use"):
            await call(made, thread="other")
        waiting = asyncio.create_task(call(made, thread="other"))
        await asyncio.sleep(0)
        busy.cancel()
        assert (await waiting).structured["mode"] == "plain"
        with pytest.raises(asyncio.CancelledError):
            await busy


@pytest.mark.req("TOOL-4")
async def test_idle_sessions_expire(tmp_path: Path, log: Path) -> None:
    async with gateway(tmp_path, hostile(log), settings={"plugins.mcp": {"idle_seconds": 0.2}}) as made:
        pid = (await call(made)).structured["pid"]
        await until(lambda: not group_members(pid), "the idle session is closed")
        assert (await call(made)).structured["pid"] != pid


@pytest.mark.req("TOOL-4")
@pytest.mark.parametrize("during", ["initialize", "call"])
async def test_a_cancelled_caller_leaves_nothing(tmp_path: Path, log: Path, during: str) -> None:
    """C39 (d)."""
    mode = "silent" if during == "initialize" else "plain"
    async with gateway(tmp_path, hostile(log, mode, session_init_timeout_seconds=None)) as made:
        waiting = asyncio.create_task(call(made, "sleep"))
        begun = "initialize" if during == "initialize" else "call sleep"
        await until(lambda: begun in log.read_text(), "it has begun")
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        if during == "initialize":
            ((_, group),) = starts(log)
            await until(lambda: not group_members(group), "nobody waits for it, so it is stopped")
            assert made.catalogue.sessions.pools.stdio.keys() == frozenset()


@pytest.mark.req("STDIO-6", "TOOL-7", "CONF-4")
async def test_a_changed_launch_starts_a_new_session_and_spares_the_others(tmp_path: Path, log: Path) -> None:
    """C17, C39 (b)."""
    bad, other = hostile(log, "plain", "one"), hostile(log, name="other")
    async with gateway(tmp_path, bad, other) as made:
        first = (await call(made)).structured
        kept = (await call(made, server="other")).structured["pid"]
        assert first["argv"] == ["plain", "one"]
        under_way = asyncio.create_task(call(made, "sleep", {"seconds": 1}))
        await until(lambda: "call sleep" in log.read_text(), "the call has begun")
        made.extensions.set(hostile(log, "plain", "two"), other)
        second = (await call(made)).structured
        assert second["argv"] == ["plain", "two"]
        assert (await under_way).content[0]["text"] == "woken"
        await until(lambda: not group_members(first["pid"]), "the old process is gone")
        assert (await call(made, server="other")).structured["pid"] == kept
        changed = replace(
            hostile(log, "plain", "two"), env={"HOSTILE_LOG": str(log), "NEW": "1"}, launch_signature="3"
        )
        made.extensions.set(changed, other)
        assert (await call(made)).structured["env"]["NEW"] == "1"
        made.extensions.set(replace(changed, enabled=False), other)
        with pytest.raises(ServerUnavailable, match="disabled"):
            await call(made)
        assert {tool.server for tool in (await made.tools()).values()} == {"other"}
        made.extensions.set(other)
        with pytest.raises(ServerUnavailable, match="no such server"):
            await call(made)
        assert (await call(made, server="other")).structured["pid"] == kept


@pytest.mark.req("STDIO-1")
@pytest.mark.parametrize(
    ("user", "thread"), [("..", "t"), ("a/b", "t"), ("", "t"), ("a", ".."), ("a", "x/../y")]
)
async def test_unsafe_ids_are_refused(tmp_path: Path, log: Path, user: str, thread: str) -> None:
    async with gateway(tmp_path, hostile(log)) as made:
        with pytest.raises((ServerUnavailable, NotFound), match="path"):
            await call(made, user=user, thread=thread)
        assert starts(log) == []
