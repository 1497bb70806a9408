"""Every bad answer of the HTTP transport fails the call it concerns, at once, and nothing else (TOOL-5)."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.mcp_servers import context, gateway, http_server, remote, until

from moorage.contract import ProtocolViolation, ServerUnavailable, ToolCaller, ToolResult

PROMPT_SECONDS = 5.0


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with http_server("hostile_http") as served:
        yield served


@pytest.mark.req("TOOL-5", "TASK-23")
@pytest.mark.parametrize(
    ("tool", "says", "sent", "status"),
    [
        ("status_400", "400", False, 400),
        ("status_401", "401", False, 401),
        ("status_403", "403", False, 403),
        ("status_404", "no longer knows the session", False, 404),
        ("status_429", "429", False, 429),
        ("status_500", "500: fault status_500", True, 500),
        ("status_503", "503", True, 503),
        ("html", "text/html", True, None),
        ("bad_json", "no JSON", True, None),
        ("truncated", "RemoteProtocolError", True, None),
        ("early_end", "no JSON", True, None),
        ("reset", "RemoteProtocolError", True, None),
        ("sse_junk", "no JSON", True, None),
        ("sse_early_end", "ended early", True, None),
        ("sse_other_id", "another request", True, None),
        ("resumable_early_end", "cannot be resumed", True, None),
        ("wrong_id", "another request", True, None),
        ("accepted", "no answer", True, 202),
        ("redirect_loop", "307", True, 307),
        ("redirect_away", "307", True, 307),
        ("no_type", "no content type", True, None),
        ("request_back", "no reply", True, None),
    ],
)
async def test_a_fault_fails_its_call_at_once_and_spares_siblings(
    url: str, tmp_path: Path, tool: str, says: str, sent: bool, status: int | None
) -> None:
    async with gateway(tmp_path, remote("bad", url)) as made:
        caller = made.context.service(ToolCaller)

        async def call(name: str) -> ToolResult:
            return await caller.call("bad", name, {}, context=context(), phase="call")

        await call("ok")
        siblings = [asyncio.create_task(call("slow")), asyncio.create_task(call("slow_sse"))]
        async with asyncio.timeout(PROMPT_SECONDS):
            with pytest.raises(ServerUnavailable, match=says) as caught:
                await call(tool)
        assert "'bad'" in str(caught.value)
        assert (caught.value.sent, caught.value.http_status) == (sent, status)
        if status is None or status == 202:  # an HTTP error may end the session, and so its siblings' wait
            results = await asyncio.gather(*siblings)
            assert [result.content[0]["text"] for result in results] == ["slow", "slow_sse"]
        else:
            async with asyncio.timeout(PROMPT_SECONDS):
                await asyncio.gather(*siblings, return_exceptions=True)
        assert (await call("ok")).content[0]["text"] == "ok"


@pytest.mark.req("TASK-23", "TASK-9")
async def test_a_reply_that_is_no_tool_result_is_a_protocol_violation(url: str, tmp_path: Path) -> None:
    async with gateway(tmp_path, remote("bad", url)) as made:
        caller = made.context.service(ToolCaller)
        async with asyncio.timeout(PROMPT_SECONDS):
            with pytest.raises(ProtocolViolation, match="'bad'"):
                await caller.call("bad", "list_result", {}, context=context(), phase="status")


@pytest.mark.req("TOOL-5")
@pytest.mark.parametrize("tool", ["gzip", "chatty_sse", "resumed", "slow_sse", "redirect_once"])
async def test_unusual_but_right_answers_arrive(url: str, tmp_path: Path, tool: str) -> None:
    async with gateway(tmp_path, remote("odd", url)) as made:
        caller = made.context.service(ToolCaller)
        result = await caller.call("odd", tool, {}, context=context(), phase="call")
        assert result.content[0]["text"] == tool


async def notes(caller: ToolCaller) -> dict[str, Any]:
    result = await caller.call("bad", "notes", {}, context=context(), phase="call")
    facts: dict[str, Any] = result.structured
    return facts


@pytest.mark.req("STDIO-5", "TOOL-5")
async def test_a_cancelled_call_is_told_and_its_stream_given_back(tmp_path: Path) -> None:
    with http_server("hostile_http") as url:
        async with gateway(tmp_path, remote("bad", url)) as made:
            caller = made.context.service(ToolCaller)
            calls = [
                asyncio.create_task(
                    caller.call("bad", "sse_open_for_ever", {}, context=context(), phase="call")
                )
                for _ in range(5)
            ]
            async with asyncio.timeout(PROMPT_SECONDS):
                while (await notes(caller))["open"] < 5:
                    await asyncio.sleep(0.02)
            tasks_before = len(asyncio.all_tasks())
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
            async with asyncio.timeout(PROMPT_SECONDS):
                while (facts := await notes(caller))["open"]:
                    await asyncio.sleep(0.02)
            told = [
                e["params"]["requestId"] for e in facts["log"] if e["method"] == "notifications/cancelled"
            ]
            waited = [
                e["id"]
                for e in facts["log"]
                if e["method"] == "tools/call" and e["params"]["name"] == "sse_open_for_ever"
            ]
            assert sorted(told) == sorted(waited)
            await until(lambda: len(asyncio.all_tasks()) <= tasks_before - 5, "no task is left waiting")


@pytest.mark.req("TOOL-5")
async def test_a_session_that_the_server_has_lost_is_replaced(tmp_path: Path) -> None:
    forget = tmp_path / "forget"
    with http_server("hostile_http", "--forget", str(forget)) as url:
        async with gateway(tmp_path, remote("bad", url)) as made:
            caller = made.context.service(ToolCaller)
            await notes(caller)
            forget.touch()
            with pytest.raises(ServerUnavailable) as caught:
                await notes(caller)
            assert not caught.value.sent
            forget.unlink()
            sessions = {e["session"] for e in (await notes(caller))["log"] if e["method"] == "tools/call"}
            assert len(sessions) == 2


@pytest.mark.req("TOOL-2", "TOOL-8")
@pytest.mark.parametrize(
    ("fault", "says"),
    [("status_401", "401"), ("html", "text/html"), ("status_500", "500"), ("accepted", "no answer")],
)
async def test_a_server_that_cannot_be_initialised_is_left_out_at_once(
    tmp_path: Path, fault: str, says: str
) -> None:
    with http_server("hostile_http", "--init", fault) as url:
        async with gateway(tmp_path, remote("bad", url)) as made:
            async with asyncio.timeout(PROMPT_SECONDS):
                assert await made.tools() == {}
            (state,) = await made.catalogue.servers()
            assert state.state == "failed"
            assert says in (state.error or "")
