"""Many users at once, expiry in the middle, redirects and denials, against real servers."""

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from support.credential_gateway import Recorder, credential_gateway, header
from support.mcp_servers import http_server
from support.token_server import token_server

from moorage.contract import CredentialDenied, PluginError, ServerUnavailable

USERS = [f"user-{number}" for number in range(20)]


@pytest.mark.req("CRED-3", "CRED-4", "CRED-5", "TOOL-5")
async def test_200_calls_of_20_users_on_two_servers_with_an_expiry_in_the_middle(tmp_path: Path) -> None:
    with http_server("recorder") as one, http_server("recorder") as two, token_server() as tokens:
        oauth = {"token_url": tokens.url, "client_id": "me", "client_secret": "s3cret-of-client"}
        users = {user: f"Bearer of-{user}" for user in USERS}
        servers = {
            "one": {
                "url": f"{one}/mcp",
                "oauth": oauth,
                "user_auth": {"header": "X-User-Token", "users": users},
                "headers_from_context": {"headers": {"X-Tenant": "tenant_one"}},
            },
            "two": {
                "url": f"{two}/mcp",
                "oauth": {**oauth, "scope": "two"},
                "headers_from_context": {"headers": {"X-User-Token": "own_token"}},
            },
        }
        async with credential_gateway(tmp_path, servers) as made:

            async def call(number: int) -> None:
                user = USERS[number % 20]
                secrets = {
                    "tenant_one": f"tenant of {user}",
                    "own_token": f"Bearer of-{user}",
                    "spare": "never-sent",
                }
                server = "one" if number % 2 else "two"
                result = await made.call(
                    server, user=user, thread=f"thread-{user}", secrets=secrets, arguments={"me": user}
                )
                assert not result.is_error

            await asyncio.gather(*(call(number) for number in range(100)))
            assert len(tokens.forms) == 2
            await Recorder(one).refuse("Bearer access-token-1", "Bearer access-token-2")
            await asyncio.gather(*(call(number) for number in range(100, 200)))
            assert len(tokens.forms) == 3
        for url, tenants in ((one, True), (two, False)):
            records = [r for r in await Recorder(url).records() if r["method"] == "tools/call"]
            assert len(records) >= 100
            for record in records:
                user = record["arguments"]["me"]
                assert header(record, "x-user-token") == [f"Bearer of-{user}"]
                assert header(record, "x-tenant") == ([f"tenant of {user}"] if tenants else [])
                assert header(record)[0].startswith("Bearer access-token-")
                assert "never-sent" not in str(record)


@pytest.mark.req("CRED-3")
async def test_a_revoked_token_is_renewed_once_over_the_wire(tmp_path: Path) -> None:
    with http_server("recorder") as url, token_server() as tokens:
        servers = {"s": {"url": f"{url}/mcp", "oauth": {"token_url": tokens.url, "client_id": "me"}}}
        async with credential_gateway(tmp_path, servers) as made:
            await made.call("s")
            await Recorder(url).refuse("Bearer access-token-1")
            assert not (await made.call("s")).is_error
            await Recorder(url).refuse(*(f"Bearer access-token-{n}" for n in range(1, 9)))
            with pytest.raises(ServerUnavailable) as caught:
                await made.call("s")
            assert caught.value.http_status == 401
            assert "access-token" not in str(caught.value)
        calls = [header(r)[0][-1] for r in await Recorder(url).records() if r["tool"] == "touch"]
        assert calls == ["1", "1", "2", "2"]  # the third is refused at its session's initialisation
        assert len(tokens.forms) == 3


@pytest.mark.req("CRED-4", "CRED-5", "CRED-9")
async def test_a_denied_call_reaches_no_server_and_the_session_serves_the_next(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with http_server("recorder") as url:
        servers = {
            "users": {"url": f"{url}/users", "user_auth": {"users": {"alice": "$ALICE", "bob": "$UNSET"}}},
            "context": {
                "url": f"{url}/context",
                "headers_from_context": {"headers": {"X-T": "tenant_token"}},
            },
        }
        env = {"ALICE": "Bearer s3cret-of-alice"}
        bad = {"tenant_token": "s3cret\r\nX-Admin: 1"}
        async with credential_gateway(tmp_path, servers, env=env) as made:
            with caplog.at_level(logging.DEBUG):
                for user in ("bob", "carol", "Alice"):
                    with pytest.raises(CredentialDenied):
                        await made.call("users", user=user)
                for secrets in ({}, bad, {"tenant_token": {"nested": "s3cret-nested"}}):
                    with pytest.raises(CredentialDenied, match="tenant_token"):
                        await made.call("context", secrets=secrets)
            assert await Recorder(url).records() == []
            assert not (await made.call("users")).is_error
            assert not (await made.call("context", secrets={"tenant_token": "fine"})).is_error
            assert any("UNSET" in warning for warning in made.warnings)
    assert "s3cret" not in caplog.text


@pytest.mark.req("CRED-5")
async def test_request_secrets_go_to_the_server_that_maps_them_and_nowhere_else(tmp_path: Path) -> None:
    with http_server("recorder") as a, http_server("recorder") as b:
        mapped = {"headers": {"Authorization": "tenant_token"}}
        servers = {"a": {"url": f"{a}/mcp", "headers_from_context": mapped}, "b": {"url": f"{b}/mcp"}}
        secrets = {"tenant_token": "Bearer s3cret-tenant", "other_token": "s3cret-other"}
        async with credential_gateway(tmp_path, servers) as made:
            for server in servers:
                await made.call(server, secrets=secrets)
        assert {tuple(header(r)) for r in await Recorder(a).records()} == {("Bearer s3cret-tenant",)}
        assert "s3cret-other" not in str(await Recorder(a).records())
        assert "s3cret" not in str(await Recorder(b).records())


@pytest.mark.req("CRED-2")
@pytest.mark.parametrize("source", ["headers", "user_auth", "headers_from_context"])
async def test_no_credential_follows_a_redirect_to_another_origin(tmp_path: Path, source: str) -> None:
    with http_server("recorder") as url, http_server("recorder") as elsewhere:
        blocks: dict[str, Any] = {
            "headers": {"X-Api-Key": "s3cret-static"},
            "user_auth": {"header": "X-Api-Key", "users": {"alice": "s3cret-of-alice"}},
            "headers_from_context": {"headers": {"X-Api-Key": "key"}},
        }
        servers = {"s": {"url": f"{url}/mcp", source: blocks[source]}}
        await Recorder(url).redirect(f"{elsewhere}/mcp")
        async with credential_gateway(tmp_path, servers) as made:
            with pytest.raises(ServerUnavailable) as caught:
                await made.call("s", secrets={"key": "s3cret-of-run"})
            assert "s3cret" not in str(caught.value)
        assert await Recorder(url).records()
        assert "s3cret" not in str(await Recorder(elsewhere).records())


@pytest.mark.req("CRED-6")
async def test_a_stdio_server_is_called_without_these_sources_and_a_warning_says_so(tmp_path: Path) -> None:
    import sys

    from support.mcp_servers import SERVERS

    servers = {
        "local": {
            "command": sys.executable,
            "args": [str(SERVERS / "good.py")],
            "oauth": {"token_url": "http://127.0.0.1:9/token", "client_id": "me"},
            "user_auth": {"users": {}},
            "headers_from_context": {"headers": {"X-T": "key"}},
        }
    }
    async with credential_gateway(tmp_path, servers) as made:
        result = await made.call("local", "echo", arguments={"text": "hello"})
        assert not result.is_error
        for section in ("oauth", "user_auth", "headers_from_context"):
            assert any(section in warning for warning in made.warnings), made.warnings


@pytest.mark.req("CRED-7")
async def test_the_start_warns_of_headers_that_end_with_the_run(tmp_path: Path) -> None:
    from support.credential_gateway import TOOLSETS

    servers = {
        "s": {
            "url": "http://127.0.0.1:9/mcp",
            "headers_from_context": {"headers": {"X-T": "key"}},
            "task_toolsets": TOOLSETS,
        }
    }
    async with credential_gateway(tmp_path, servers) as made:
        made.extensions.current()
        assert any("polled" in warning for warning in made.warnings)


@pytest.mark.req("PLUG-7")
async def test_an_interceptor_that_fails_costs_its_call_and_not_the_session(tmp_path: Path) -> None:
    from support.calls import built, chain

    from moorage.contract import InterceptorRunner, Next, ToolCall, ToolResult

    async def fails_for_bob(call: ToolCall, follow: Next) -> ToolResult:
        if call.arguments.get("me") == "bob":
            raise RuntimeError("s3cret in a third party's error")
        return await follow(call)

    with http_server("recorder") as url:
        async with credential_gateway(tmp_path, {"s": {"url": f"{url}/mcp"}}) as made:
            services: dict[type[Any], object] = made.context._services
            services[InterceptorRunner] = chain(built(fails_for_bob))
            await made.call("s")
            with pytest.raises(PluginError, match="culprit") as caught:
                await made.call("s", arguments={"me": "bob"})
            assert "s3cret" not in str(caught.value)
            await made.call("s")
        methods = [r["method"] for r in await Recorder(url).records()]
        assert methods.count("initialize") == 1
        assert methods.count("tools/call") == 2
