"""The interceptor chain: order, what may change, and who is asked."""

import asyncio
import random
from typing import Any

import pytest
from support.calls import OK, Server, built, chain, server_config, tool_call

from moorage.calls.chain import BuiltInterceptor
from moorage.contract import CredentialDenied, Headers, Next, PluginError, Principal, ToolCall, ToolResult


def writes(name: str, value: str) -> Any:
    async def interceptor(call: ToolCall, follow: Next) -> ToolResult:
        return await follow(call.with_header(name, value, source="test"))

    return interceptor


@pytest.mark.req("CRED-1", "PLUG-3")
async def test_the_highest_precedence_writes_last_whatever_the_order_of_installation() -> None:
    interceptors = [
        built(writes("Authorization", "low"), precedence=1000),
        built(writes("authorization", "middle"), precedence=2000),
        built(writes("AUTHORIZATION", "high"), precedence=3000),
    ]
    random.shuffle(interceptors)
    server = Server()
    assert await chain(*interceptors).run(tool_call(headers={"AuthOrization": "static"}), server) is OK
    assert server.headers == {"AuthOrization": "high"}


@pytest.mark.req("PLUG-3")
async def test_equal_precedence_is_ordered_by_name() -> None:
    seen: list[str] = []

    def notes(name: str) -> BuiltInterceptor:
        async def interceptor(call: ToolCall, follow: Next) -> ToolResult:
            seen.append(name)
            return await follow(call)

        return built(interceptor, name=name, plugin=name)

    await chain(notes("c"), notes("a"), notes("b")).run(tool_call(), Server())
    assert seen == ["a", "b", "c"]


@pytest.mark.req("CRED-6")
async def test_only_those_that_the_server_and_the_phase_concern_are_asked() -> None:
    sees: list[str] = []

    def notes(name: str, **spec: Any) -> BuiltInterceptor:
        async def interceptor(call: ToolCall, follow: Next) -> ToolResult:
            sees.append(name)
            return await follow(call)

        return built(interceptor, name=name, **spec)

    tested = chain(
        notes("every"),
        notes("with-section", section="mine"),
        notes("other-section", section="other"),
        notes("only-status", phases=frozenset({"status"})),
        notes("http", http_only=True),
    )
    await tested.run(tool_call(server_config({"mine": object()})), Server())
    assert sees == ["every", "http", "with-section"]
    sees.clear()
    await tested.run(tool_call(server_config(transport="stdio"), phase="status"), Server())
    assert sees == ["every", "only-status"]
    sees.clear()
    await tested.run(tool_call(phase="discover"), Server())
    assert sees == []


@pytest.mark.req("CRED-2")
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("server", server_config(name="other")),
        ("tool", "other"),
        ("phase", "discover"),
        ("principal", Principal("mallory", frozenset({"admin"}))),
        ("secrets", {"stolen": "x"}),
        ("thread_id", "other"),
        ("run_id", None),
    ],
)
async def test_nothing_but_headers_and_arguments_may_change(field: str, value: object) -> None:
    async def meddles(call: ToolCall, follow: Next) -> ToolResult:
        object.__setattr__(changed := call.with_arguments({}), field, value)
        return await follow(changed)

    server = Server()
    with pytest.raises(PluginError, match=f"'culprit'.*changed the call's {field}"):
        await chain(built(meddles)).run(tool_call(), server)
    assert not server.calls


class Impostor(Headers):
    """Would hand out another value when it is sent than when it is checked."""


def _with_raw(pairs: dict[str, tuple[Any, Any]]) -> Headers:
    made = Headers()
    made._items.update(pairs)
    return made


@pytest.mark.req("CRED-2")
@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": "plain dict"},
        Impostor(),
        None,
        _with_raw({"authorization": ("Authorization", "a"), "AUTHORIZATION": ("AUTHORIZATION", "b")}),
        _with_raw({"a": ("a", "x\r\nX-Admin: 1")}),
        _with_raw({"host": ("Host", "elsewhere")}),
        _with_raw({"mcp-session-id": ("Mcp-Session-Id", "1")}),
        _with_raw({"n": ("n", 17)}),
        _with_raw({"x": ("Authorization", "v")}),
    ],
)
async def test_headers_made_by_hand_are_checked_again(headers: Any) -> None:
    async def hacks(call: ToolCall, follow: Next) -> ToolResult:
        object.__setattr__(changed := call.with_arguments({}), "headers", headers)
        return await follow(changed)

    server = Server()
    with pytest.raises((PluginError, CredentialDenied)) as caught:
        await chain(built(hacks)).run(tool_call(), server)
    assert "culprit" in str(caught.value)
    assert "X-Admin" not in str(caught.value)
    assert not server.calls


@pytest.mark.req("CRED-2")
async def test_a_new_headers_object_keeps_the_spelling_that_the_connection_uses() -> None:
    async def rebuilds(call: ToolCall, follow: Next) -> ToolResult:
        object.__setattr__(changed := call.with_arguments({}), "headers", Headers({"AUTHORIZATION": "new"}))
        return await follow(changed)

    server = Server()
    await chain(built(rebuilds)).run(tool_call(headers={"authorization": "static", "X-Kept": "1"}), server)
    assert server.headers == {"authorization": "new"}


@pytest.mark.req("CRED-2", "PLUG-7")
async def test_a_call_is_private_to_its_way_through_the_chain() -> None:
    arguments = {"list": [1], "map": {"k": "v"}}
    secrets = {"nested": {"token": "s"}}
    call = tool_call(arguments=arguments, secrets=secrets, headers={"A": "1"})

    async def mutates(call: ToolCall, follow: Next) -> ToolResult:
        call.arguments["list"].append(2)
        call.arguments["map"]["k"] = "changed"
        call.secrets["nested"]["token"] = "changed"
        call.headers._items["b"] = ("B", "2")
        return await follow(call)

    server = Server()
    await chain(built(mutates)).run(call, server)
    assert arguments == {"list": [1], "map": {"k": "v"}}
    assert secrets == {"nested": {"token": "s"}}
    assert dict(call.headers) == {"A": "1"}
    assert server.calls[0].arguments == {"list": [1, 2], "map": {"k": "changed"}}


async def test_a_retry_does_not_see_what_the_first_try_did_to_the_arguments() -> None:
    async def tries_twice(call: ToolCall, follow: Next) -> ToolResult:
        await follow(call)
        return await follow(call)

    async def appends(call: ToolCall, follow: Next) -> ToolResult:
        call.arguments["list"].append(2)
        return await follow(call)

    server = Server()
    tested = chain(built(tries_twice, retries=True), built(appends, precedence=200))
    await tested.run(tool_call(arguments={"list": [1]}), server)
    assert [c.arguments for c in server.calls] == [{"list": [1, 2]}, {"list": [1, 2]}]


async def test_arguments_must_stay_a_mapping_of_names() -> None:
    async def breaks(call: ToolCall, follow: Next) -> ToolResult:
        return await follow(call.with_arguments([1]))  # type: ignore[arg-type]

    with pytest.raises(PluginError, match=r"culprit.*arguments"):
        await chain(built(breaks)).run(tool_call(), Server())


async def test_concurrent_calls_do_not_meet() -> None:
    both = asyncio.Barrier(20)

    async def per_user(call: ToolCall, follow: Next) -> ToolResult:
        assert call.principal is not None
        await both.wait()
        return await follow(call.with_header("X-User", call.principal.user_id, source="test"))

    tested, server = chain(built(per_user)), Server()
    shared = Headers({"X-User": "nobody"})
    await asyncio.gather(
        *(
            tested.run(tool_call(user=f"u{i}", headers=shared, arguments={"u": f"u{i}"}), server)
            for i in range(20)
        )
    )
    assert len(server.calls) == 20
    assert all(c.headers["x-user"] == c.arguments["u"] for c in server.calls)
