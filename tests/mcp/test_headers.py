"""Which headers reach the wire, and who shares a connection (CRED-2, TOOL-5, TOOL-9)."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.mcp_servers import Gateway, context, gateway, http_server, remote, stdio

from moorage.contract import (
    CredentialDenied,
    InterceptorRunner,
    Next,
    ServerUnavailable,
    ToolCall,
    ToolCaller,
    ToolResult,
)


class PerUser:
    """Writes the user's token into a header, and may renew it once after a 401."""

    def __init__(self, header: str = "Authorization", *, renews: bool = False) -> None:
        self._header = header
        self._renews = renews
        self.refused: list[ServerUnavailable] = []

    async def run(self, call: ToolCall, terminal: Next) -> ToolResult:
        user = call.principal.user_id if call.principal else "discovery"
        try:
            return await terminal(call.with_header(self._header, f"Bearer token-of-{user}", source="test"))
        except ServerUnavailable as error:
            self.refused.append(error)
            if error.http_status != 401 or not self._renews:
                raise
            return await terminal(call.with_header(self._header, "Bearer renewed", source="test"))


async def call(made: Gateway, tool: str = "touch", *, user: str = "alice", **kwargs: Any) -> ToolResult:
    caller = made.context.service(ToolCaller)
    kwargs = {"phase": "call", "thread": "t1", **kwargs}
    who = context(user, kwargs.pop("thread"))
    return await caller.call("s", tool, {}, context=who, **kwargs)


async def seen(made: Gateway) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = (await call(made, "seen", user="observer")).structured["seen"]
    return records[:-1]


def values(record: dict[str, Any], header: str) -> list[str]:
    return [value for name, value in record["headers"] if name.lower() == header.lower()]


@pytest.mark.req("CRED-2", "CRED-1")
async def test_one_spelling_reaches_the_wire_on_every_request(tmp_path: Path) -> None:
    with http_server("echo_headers") as url:
        server = remote("s", url, headers={"authorization": "Bearer static", "X-Empty": "", "X-Plain": "1"})
        async with gateway(tmp_path, server) as made:
            made.context.provide(InterceptorRunner, PerUser("AUTHORIZATION"))
            await made.tools()
            await call(made)
            records = await seen(made)
    kinds = {record["method"] for record in records}
    assert {"initialize", "notifications/initialized", "tools/list", "tools/call"} <= kinds
    for record in records:
        assert len(values(record, "authorization")) == 1
        assert "static" not in str(values(record, "authorization"))
        assert values(record, "x-plain") == ["1"]
        assert values(record, "x-empty") == []
    assert {values(r, "authorization")[0] for r in records if r["method"] == "tools/list"} == {
        "Bearer token-of-discovery"
    }


@pytest.mark.req("TOOL-5")
async def test_no_connection_is_shared_across_credentials_and_each_is_reused(tmp_path: Path) -> None:
    with http_server("echo_headers") as url:
        async with gateway(tmp_path, remote("s", url)) as made:
            made.context.provide(InterceptorRunner, PerUser())
            for _ in range(3):
                await asyncio.gather(*(call(made, user=user) for user in ("alice", "bob", "carol")))
            records = await seen(made)
    by_connection: dict[int, set[str]] = {}
    for record in records:
        by_connection.setdefault(record["connection"], set()).update(values(record, "authorization"))
    assert all(len(tokens) == 1 for tokens in by_connection.values())
    users = {"Bearer token-of-alice", "Bearer token-of-bob", "Bearer token-of-carol"}
    started = Counter(values(r, "authorization")[0] for r in records if r["method"] == "initialize")
    assert {user: started[user] for user in users} == dict.fromkeys(users, 1)


@pytest.mark.req("TOOL-5", "ORD-6")
async def test_polls_of_all_threads_share_one_session(tmp_path: Path) -> None:
    with http_server("echo_headers") as url:
        async with gateway(tmp_path, remote("s", url)) as made:
            for number in range(10):
                await call(made, user=f"u{number}", thread=f"t{number}", phase="status")
            records = await seen(made)
    assert sum(record["method"] == "initialize" for record in records) == 1
    polls = {r["connection"] for r in records if r["method"] == "tools/call"}
    assert len(polls) == 1


@pytest.mark.req("CRED-3", "TOOL-5")
async def test_a_401_is_seen_and_can_be_answered_with_another_credential(tmp_path: Path) -> None:
    with http_server("echo_headers", "--require", "Authorization=Bearer renewed") as url:
        async with gateway(tmp_path, remote("s", url)) as made:
            runner = PerUser(renews=True)
            made.context.provide(InterceptorRunner, runner)
            assert "s_touch" in await made.tools()
            assert not (await call(made)).is_error
            assert [(e.http_status, e.sent) for e in runner.refused] == [(401, False)] * 2


@pytest.mark.req("CRED-2")
@pytest.mark.parametrize("value", ["tok\n", " tok", "tök", "a\x00b"])
async def test_a_static_header_that_http_cannot_carry_is_refused_before_anything_is_sent(
    tmp_path: Path, value: str
) -> None:
    with http_server("echo_headers") as url:
        async with gateway(tmp_path, remote("s", url, headers={"X-Key": value})) as made:
            assert await made.tools() == {}
            (state,) = await made.catalogue.servers()
            assert "'X-Key'" in (state.error or "")
            assert "tok" not in (state.error or "").replace("token", "")
            with pytest.raises(CredentialDenied, match="X-Key"):
                await call(made)


@pytest.mark.req("TOOL-9")
async def test_headers_of_a_stdio_call_travel_in_its_meta(tmp_path: Path) -> None:
    log = tmp_path / "log"
    server = stdio("s", "hostile", env={"HOSTILE_LOG": str(log)}, headers={"X-Ignored": "1"})
    async with gateway(tmp_path, server) as made:
        await call(made, "ok")
        made.context.provide(InterceptorRunner, PerUser("X-Tenant"))
        await call(made, "ok")
    first, second = (line for line in log.read_text().splitlines() if line.startswith("call ok"))
    assert first == "call ok null"
    assert second == 'call ok {"headers": {"X-Tenant": "Bearer token-of-alice"}}'


@pytest.mark.req("TOOL-5", "TOOL-4")
async def test_state_of_a_session_is_its_threads_alone(tmp_path: Path) -> None:
    """The official SDK gives session ids; what it keeps per session must not cross threads."""
    with http_server("hostile_http") as url:
        async with gateway(tmp_path, remote("s", url)) as made:
            caller = made.context.service(ToolCaller)

            async def session(user: str, thread: str, phase: Any = "call") -> str:
                result = await caller.call("s", "notes", {}, context=context(user, thread), phase=phase)
                return str(result.structured["log"][-1]["session"])

            owners = [("alice", "t1"), ("alice", "t2"), ("bob", "t1")]
            first = [await session(*owner) for owner in owners]
            assert len(set(first)) == 3
            assert [await session(*owner) for owner in owners] == first
            polls = {await session(*owner, phase="status") for owner in owners}
            assert len(polls) == 1
            assert not polls & set(first)
