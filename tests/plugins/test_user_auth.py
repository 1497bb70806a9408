"""``user_auth``: the calling user's own credential, or none (CRED-4, C25, C26, C27)."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from support.calls import OK, Server, server_config, tool_call
from support.credential_parts import gateway_context

from moorage.calls.chain import BuiltInterceptor, InterceptorChain
from moorage.contract import ALL_CALL_PHASES, CredentialDenied, Redactor, ToolCall
from moorage_plugins.user_auth import plugin
from moorage_plugins.user_auth.model import UserAuth

pytestmark = pytest.mark.req("CRED-4")
USERS = {"alice": "Bearer alices", "bob": "", "carl": None}


@pytest.fixture
def chain(tmp_path: Path) -> InterceptorChain:
    (spec,) = plugin.moorage_credential_interceptors()
    return InterceptorChain([BuiltInterceptor(spec, spec.build(gateway_context(tmp_path)), "user_auth")])


def call(user: str | None, *, users: Any = None, transport: str = "http", **block: Any) -> ToolCall:
    section = UserAuth.model_validate({"users": users or USERS, **block})
    server = server_config({"user_auth": section}, transport=transport)
    return tool_call(server, user=user, headers={"authorization": "Bearer of-discovery", "X-Team": "blue"})


async def test_the_users_value_replaces_the_static_one(chain: InterceptorChain) -> None:
    server = Server()
    assert await chain.run(call("alice"), server) is OK
    assert server.headers == {"authorization": "Bearer alices", "X-Team": "blue"}


@pytest.mark.parametrize("user", ["bob", "carl", "dora", "Alice", "alice ", "", "*", None])
async def test_whoever_has_no_value_is_denied_before_anything_is_sent(
    chain: InterceptorChain, user: str | None
) -> None:
    server = Server()
    with pytest.raises(CredentialDenied, match=r"server 's'.*'Authorization'") as caught:
        await chain.run(call(user), server)
    assert not server.calls
    assert "alices" not in str(caught.value)


async def test_passthrough_lets_lower_sources_speak(chain: InterceptorChain) -> None:
    server = Server()
    await chain.run(call("dora", on_missing="passthrough"), server)
    assert server.headers["authorization"] == "Bearer of-discovery"


BAD_VALUES = ["tok\n", "tok ", " tok", "to\x00k", "tök", "秘密", "\r\nX-Admin: 1", "\ttok", "tok\x7f", " "]


@pytest.mark.req("CRED-2")
@pytest.mark.parametrize("on_missing", ["deny", "passthrough"])
@pytest.mark.parametrize("value", BAD_VALUES)
async def test_a_value_that_http_cannot_carry_is_denied_and_not_quoted(
    chain: InterceptorChain, value: str, on_missing: str
) -> None:
    server = Server()
    with pytest.raises(CredentialDenied) as caught:
        await chain.run(call("alice", users={"alice": value}, on_missing=on_missing), server)
    assert not server.calls
    assert value.strip() not in str(caught.value) or not value.strip()
    assert "user_auth of server 's'" in str(caught.value)


@pytest.mark.req("CRED-2")
@pytest.mark.parametrize(
    "header", ["X A", "X-A\n", "", "Host", "Content-Length", "Mcp-Session-Id", "TÉ", "a:b"]
)
def test_a_header_that_cannot_or_must_not_be_sent_is_refused_at_load(header: str) -> None:
    with pytest.raises(ValidationError, match="header"):
        UserAuth.model_validate({"header": header, "users": {}})


def test_a_refused_block_does_not_echo_its_values() -> None:
    with pytest.raises(ValidationError) as caught:
        UserAuth.model_validate({"header": "X", "users": {"alice": ["s3cret-in-a-list"]}, "on_missing": "no"})
    assert "s3cret" not in str(caught.value)
    assert "alices" not in repr(UserAuth.model_validate({"users": USERS}))


@pytest.mark.req("CRED-6")
async def test_a_stdio_server_is_skipped(chain: InterceptorChain) -> None:
    server = Server()
    await chain.run(call("dora", transport="stdio"), server)
    assert server.headers["authorization"] == "Bearer of-discovery"
    (section,) = plugin.moorage_config_sections()
    assert section.http_only


@pytest.mark.req("CRED-7")
async def test_it_is_asked_in_every_phase_that_belongs_to_a_user(chain: InterceptorChain) -> None:
    from dataclasses import replace

    for phase in ALL_CALL_PHASES:
        server = Server()
        await chain.run(replace(call("alice"), phase=phase), server)
        assert server.headers["authorization"] == "Bearer alices"
    server = Server()
    await chain.run(replace(call(None), phase="discover"), server)
    assert server.headers["authorization"] == "Bearer of-discovery"


async def test_twenty_users_do_not_meet(chain: InterceptorChain) -> None:
    users = {f"u{n}": f"Bearer of-u{n}" for n in range(20)}
    server = Server()
    await asyncio.gather(*(chain.run(call(f"u{n % 20}", users=users), server) for n in range(200)))
    assert len(server.calls) == 200
    for seen in server.calls:
        assert seen.principal is not None
        assert seen.headers["authorization"] == f"Bearer of-{seen.principal.user_id}"


@pytest.mark.req("CRED-9")
async def test_what_it_sends_is_known_to_the_redactor(tmp_path: Path) -> None:
    context = gateway_context(tmp_path)
    (spec,) = plugin.moorage_credential_interceptors()
    await InterceptorChain([BuiltInterceptor(spec, spec.build(context), "p")]).run(
        call("alice", users={"alice": "Bearer alices-long-token"}), Server()
    )
    assert context.service(Redactor).redact("bad token alices-long-token") == "bad token ***"
