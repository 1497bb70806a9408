"""``oauth``: fetching, keeping and renewing tokens against a real endpoint (CRED-3, C30, C31, C33)."""

import asyncio
import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse
from support.calls import OK, Server, server_config, tool_call
from support.credential_parts import SteppedClock, gateway_context
from support.token_server import TokenServer, token_server

from moorage.calls.chain import BuiltInterceptor, InterceptorChain
from moorage.contract import CredentialDenied, Redactor, ServerUnavailable, ToolCall
from moorage_plugins.oauth import endpoint, plugin
from moorage_plugins.oauth.model import OAuth

pytestmark = pytest.mark.req("CRED-3")

UNAUTHORIZED = ServerUnavailable("answered 401", server="s", http_status=401)


@pytest.fixture(scope="module")
def running() -> Iterator[TokenServer]:
    with token_server() as server:
        yield server


@pytest.fixture
def tokens(running: TokenServer) -> TokenServer:
    url = running.url
    running.__init__()  # type: ignore[misc]  # each test finds it as new, on the same port
    running.url = url
    return running


@pytest.fixture
def clock() -> SteppedClock:
    return SteppedClock()


@pytest.fixture
def chain(tmp_path: Path, clock: SteppedClock) -> InterceptorChain:
    return made_chain(tmp_path, clock)


def made_chain(home: Path, clock: SteppedClock) -> InterceptorChain:
    (spec,) = plugin.moorage_credential_interceptors()
    return InterceptorChain([BuiltInterceptor(spec, spec.build(gateway_context(home, clock=clock)), "oauth")])


def call(tokens: TokenServer, **block: Any) -> ToolCall:
    fields = {"token_url": tokens.url, "client_id": "me", "client_secret": "s3cret-of-client", **block}
    section = OAuth.model_validate(fields)
    return tool_call(server_config({"oauth": section}), headers={"authorization": "Bearer static"})


async def test_the_token_is_sent_and_the_form_is_right(tokens: TokenServer, chain: InterceptorChain) -> None:
    server = Server()
    extra = {"resource": "https://r", "GRANT_TYPE": "evil", "client_id": "evil", "limit": 5}
    asked = call(tokens, scope=["a", "b"], audience="aud", extra_token_params=extra)
    assert await chain.run(asked, server) is OK
    assert server.headers == {"authorization": "Bearer access-token-1"}
    assert tokens.forms == [
        {
            "grant_type": "client_credentials",
            "client_id": "me",
            "client_secret": "s3cret-of-client",
            "scope": "a b",
            "audience": "aud",
            "resource": "https://r",
            "limit": "5",
        }
    ]


async def test_other_field_names_and_types_are_understood(
    tokens: TokenServer, chain: InterceptorChain
) -> None:
    tokens.answer = lambda _: {"jwt": "tok", "kind": "DPoP", "ttl": "5250"}
    server = Server()
    fields = {"token_field": "jwt", "token_type_field": "kind", "expires_in_field": "ttl"}
    await chain.run(call(tokens, **fields), server)
    assert server.headers == {"authorization": "DPoP tok"}
    tokens.answer = lambda _: {"access_token": "tok"}
    await chain.run(call(tokens, default_token_type="Custom"), server)
    assert server.headers == {"authorization": "Custom tok"}
    tokens.answer = lambda _: {"access_token": "tok", "token_type": "bearer"}
    await chain.run(call(tokens, scope="other"), server)
    assert server.headers == {"authorization": "Bearer tok"}


async def test_discovery_carries_the_token_too(tokens: TokenServer, chain: InterceptorChain) -> None:
    from dataclasses import replace

    server = Server()
    await chain.run(replace(call(tokens), phase="discover", principal=None), server)
    assert server.headers == {"authorization": "Bearer access-token-1"}


ABSENT = object()


@pytest.mark.parametrize(
    ("expires_in", "fresh_for", "gone_after"),
    [
        ("5250", 5180, 5191),
        (5250.7, 5180, 5191),
        (3600, 3539, 3541),
        (10, 4.9, 5.1),
        (None, 230, 301),
        (ABSENT, 230, 301),
        ("3600abc", 230, 301),
        (True, 230, 301),
        ([], 230, 301),
        ("NaN", 230, 301),
        ("1e400", 230, 301),
        (10**400, 3600, 86_400),
        (0, 0.4, 1.1),
        (-5, 0.4, 1.1),
        ("0", 0.4, 1.1),
    ],
)
async def test_every_form_of_expires_in(
    tokens: TokenServer,
    chain: InterceptorChain,
    clock: SteppedClock,
    expires_in: Any,
    fresh_for: float,
    gone_after: float,
) -> None:
    reply = (
        {"access_token": "tok"} if expires_in is ABSENT else {"access_token": "tok", "expires_in": expires_in}
    )
    tokens.answer = lambda _: reply
    asked = call(tokens)
    for _ in range(10):
        await chain.run(asked, Server())
    assert len(tokens.forms) == 1
    clock.advance(fresh_for)
    await chain.run(asked, Server())
    assert len(tokens.forms) == 1
    clock.advance(gone_after - fresh_for)
    await chain.run(asked, Server())
    assert len(tokens.forms) == 2


async def test_twenty_waiters_one_fetch_and_a_cancelled_leader(
    tokens: TokenServer, chain: InterceptorChain
) -> None:
    tokens.held.clear()
    asked, server = call(tokens), Server()
    leader = asyncio.create_task(chain.run(asked, server))
    while not tokens.forms:
        await asyncio.sleep(0.01)
    followers = [asyncio.create_task(chain.run(asked, server)) for _ in range(20)]
    await asyncio.sleep(0)
    leader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leader
    tokens.held.set()
    assert await asyncio.gather(*followers) == [OK] * 20
    assert len(tokens.forms) == 1
    assert {c.headers["authorization"] for c in server.calls} == {"Bearer access-token-1"}


def test_one_fetch_across_threads_and_event_loops(tokens: TokenServer, chain: InterceptorChain) -> None:
    tokens.held.clear()
    tokens.rotating = "seed"
    asked = call(tokens, grant_type="refresh_token", refresh_token="seed")
    seen: list[str] = []
    ready = threading.Barrier(5)

    async def some() -> None:
        server = Server()
        ready.wait()
        await asyncio.gather(*(chain.run(asked, server) for _ in range(5)))
        seen.extend(c.headers["authorization"] for c in server.calls)

    threads = [threading.Thread(target=lambda: asyncio.run(some())) for _ in range(4)]
    for thread in threads:
        thread.start()
    ready.wait()
    tokens.held.set()
    for thread in threads:
        thread.join(20)
    assert seen == ["Bearer access-token-1"] * 20
    assert len(tokens.forms) == 1
    assert not tokens.reused


async def test_a_loop_that_ends_while_it_waits_leaves_the_others_unharmed(
    tokens: TokenServer, chain: InterceptorChain
) -> None:
    tokens.held.clear()
    asked = call(tokens)

    def short_lived() -> None:
        async def gives_up() -> None:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(chain.run(asked, Server()), 0.1)

        asyncio.run(gives_up())

    await asyncio.to_thread(short_lived)
    tokens.held.set()
    server = Server()
    await chain.run(asked, server)
    assert server.headers == {"authorization": "Bearer access-token-1"}
    assert len(tokens.forms) == 1


async def test_rotated_refresh_tokens_are_used_and_an_omitted_one_is_kept(
    tokens: TokenServer, chain: InterceptorChain, clock: SteppedClock
) -> None:
    replies: list[dict[str, Any]] = [
        {"access_token": "a", "expires_in": 100, "refresh_token": "second"},
        {"access_token": "b", "expires_in": 100},
        {"access_token": "c", "expires_in": 100, "refresh_token": ""},
        {"access_token": "d", "expires_in": 100},
    ]
    tokens.answer = lambda _: replies.pop(0)
    asked = call(
        tokens, grant_type="refresh_token", refresh_token="first", client_id=None, client_secret=None
    )
    for _ in range(4):
        await chain.run(asked, Server())
        clock.advance(101)
    assert [form["refresh_token"] for form in tokens.forms] == ["first", "second", "second", "second"]
    assert tokens.forms[0] == {"grant_type": "refresh_token", "refresh_token": "first"}


@pytest.mark.parametrize("changed", ["scope", "client_secret", "extra_token_params", "audience", "unknown"])
async def test_the_cache_is_keyed_by_the_whole_block(
    tokens: TokenServer, chain: InterceptorChain, changed: str
) -> None:
    server = Server()
    await chain.run(call(tokens), server)
    value = {"k": "v"} if changed == "extra_token_params" else "changed"
    await chain.run(call(tokens, **{changed: value}), server)
    await chain.run(call(tokens), server)
    assert [c.headers["authorization"][-1] for c in server.calls] == ["1", "2", "1"]


async def test_a_config_that_changes_while_a_fetch_is_under_way_gets_its_own_token(
    tokens: TokenServer, chain: InterceptorChain
) -> None:
    tokens.held.clear()
    tokens.answer = lambda form: {"access_token": f"for-{form['scope']}"}
    old, new = Server(), Server()
    first = asyncio.create_task(chain.run(call(tokens, scope="old"), old))
    while not tokens.forms:
        await asyncio.sleep(0.01)
    second = asyncio.create_task(chain.run(call(tokens, scope="new"), new))
    tokens.held.set()
    await asyncio.gather(first, second)
    assert new.headers == {"authorization": "Bearer for-new"}
    assert old.headers == {"authorization": "Bearer for-old"}


async def test_a_revoked_token_costs_one_refresh_and_one_retry(
    tokens: TokenServer, chain: InterceptorChain
) -> None:
    asked = call(tokens)
    server = Server()
    await chain.run(asked, server)
    server = Server(UNAUTHORIZED)
    assert await chain.run(asked, server) is OK
    assert [c.headers["authorization"][-1] for c in server.calls] == ["1", "2"]
    assert len(tokens.forms) == 2
    server = Server(UNAUTHORIZED)  # and once more, since the second token was taken
    assert await chain.run(asked, server) is OK
    assert len(tokens.forms) == 3


async def test_parallel_401s_share_one_refresh(tokens: TokenServer, chain: InterceptorChain) -> None:
    asked = call(tokens)
    await chain.run(asked, Server())
    revoked = "Bearer access-token-1"
    seen: list[str] = []

    async def server(call: ToolCall) -> Any:
        seen.append(call.headers["authorization"])
        await asyncio.sleep(0)
        if seen[-1] == revoked:
            raise ServerUnavailable("answered 401", server="s", http_status=401)
        return OK

    await asyncio.gather(*(chain.run(asked, server) for _ in range(20)))
    assert len(tokens.forms) == 2
    assert len(seen) <= 40


async def test_a_server_that_always_refuses_gets_no_storm(
    tokens: TokenServer, chain: InterceptorChain, clock: SteppedClock
) -> None:
    asked = call(tokens)
    sent = 0

    async def refuses(call: ToolCall) -> Any:
        nonlocal sent
        sent += 1
        raise ServerUnavailable("answered 401", server="s", http_status=401)

    with pytest.raises(ServerUnavailable, match="401"):
        await chain.run(asked, refuses)
    assert (sent, len(tokens.forms)) == (2, 2)
    for _ in range(10):
        with pytest.raises(ServerUnavailable, match="401"):
            await chain.run(asked, refuses)
    assert (sent, len(tokens.forms)) == (12, 2)
    clock.advance(31)
    with pytest.raises(ServerUnavailable):
        await chain.run(asked, refuses)
    assert len(tokens.forms) == 3


@pytest.mark.parametrize("status", [None, 403, 500])
async def test_other_failures_are_not_retried(
    tokens: TokenServer, chain: InterceptorChain, status: int | None
) -> None:
    error = ServerUnavailable("down", server="s", http_status=status)
    server = Server(error)
    with pytest.raises(ServerUnavailable) as caught:
        await chain.run(call(tokens), server)
    assert caught.value is error
    assert (len(server.calls), len(tokens.forms)) == (1, 1)


ECHO = {"error": "invalid_client", "error_description": "s3cret-of-client is wrong", "body": "s3cret-of-body"}


@pytest.mark.req("CRED-9")
@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda _: JSONResponse(ECHO, 401), r"answered 401 \(invalid_client\)"),
        (lambda _: JSONResponse({"error": "s3cret-of-body"}, 400), "answered 400"),
        (lambda _: PlainTextResponse("s3cret-of-body", 500), "answered 500"),
        (lambda _: PlainTextResponse("s3cret-of-body"), "no JSON"),
        (lambda _: JSONResponse(["s3cret-of-body"]), "no JSON object"),
        (lambda _: {"token": "s3cret-of-body"}, "no text in 'access_token'"),
        (lambda _: {"access_token": 17}, "no text in 'access_token'"),
        (lambda _: {"access_token": ""}, "no text in 'access_token'"),
        (lambda _: {"access_token": "s3cret-of-body\r\nX: 1"}, "cannot carry"),
        (lambda _: {"access_token": "ok", "token_type": "s3cret\n"}, "cannot carry"),
        (lambda _: PlainTextResponse('{"a": "' + "s3cret" * 20_000 + '"}'), "more than 65536 bytes"),
        (lambda _: PlainTextResponse("[" * 60_000), "no JSON"),
        (lambda _: RedirectResponse("/token?again=1", 307), "answered 307"),
    ],
)
async def test_a_bad_reply_denies_the_call_and_quotes_nothing(
    tokens: TokenServer, chain: InterceptorChain, answer: Any, says: str, caplog: pytest.LogCaptureFixture
) -> None:
    tokens.answer = answer
    server = Server()
    with caplog.at_level(logging.DEBUG), pytest.raises(CredentialDenied, match=says) as caught:
        await chain.run(call(tokens), server)
    assert not server.calls
    assert len(tokens.forms) == 1
    assert "server 's'" in str(caught.value)
    assert "s3cret" not in str(caught.value) + caplog.text
    assert caught.value.__cause__ is None


@pytest.mark.req("CRED-9")
async def test_the_url_of_the_endpoint_is_not_logged(
    tokens: TokenServer, chain: InterceptorChain, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        await chain.run(call(tokens, token_url=f"{tokens.url}?key=s3cret-in-query"), Server())
    assert "s3cret" not in caplog.text


async def test_an_endpoint_that_cannot_be_reached_is_not_asked_for_every_call(
    tokens: TokenServer, chain: InterceptorChain, clock: SteppedClock
) -> None:
    asked = call(tokens)
    tokens.answer = lambda _: PlainTextResponse("down", 503)
    for _ in range(10):
        with pytest.raises(CredentialDenied, match="answered 503"):
            await chain.run(asked, Server())
    assert len(tokens.forms) == 1
    clock.advance(1.1)
    del tokens.answer
    tokens.answer = tokens._ordinary
    await chain.run(asked, Server())
    assert len(tokens.forms) == 2
    with pytest.raises(CredentialDenied, match="ConnectError"):
        await chain.run(call(tokens, token_url="http://127.0.0.1:9/token"), Server())


async def test_a_slow_endpoint_has_a_deadline(
    tokens: TokenServer, chain: InterceptorChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint, "TIMEOUT_SECONDS", 0.2)
    tokens.held.clear()
    with pytest.raises(CredentialDenied, match=r"took more than 0\.2 seconds|ReadTimeout"):
        await chain.run(call(tokens), Server())


async def test_an_early_renewal_that_fails_leaves_the_good_token_in_use(
    tokens: TokenServer, chain: InterceptorChain, clock: SteppedClock
) -> None:
    asked, server = call(tokens), Server()
    await chain.run(asked, server)
    tokens.answer = lambda _: PlainTextResponse("down", 503)
    clock.advance(3590)
    await chain.run(asked, server)
    assert server.headers == {"authorization": "Bearer access-token-1"}
    clock.advance(11)
    with pytest.raises(CredentialDenied):
        await chain.run(asked, server)


async def test_a_failed_renewal_after_a_401_says_so(tokens: TokenServer, chain: InterceptorChain) -> None:
    asked = call(tokens)
    await chain.run(asked, Server())
    tokens.answer = lambda _: JSONResponse(ECHO, 401)
    server = Server(UNAUTHORIZED)
    with pytest.raises(CredentialDenied, match="invalid_client"):
        await chain.run(asked, server)
    assert len(server.calls) == 1
    await chain.run(asked, server)  # the others keep what they have


@pytest.mark.req("CRED-9")
async def test_secrets_and_tokens_become_known_to_the_redactor(tokens: TokenServer, tmp_path: Path) -> None:
    context = gateway_context(tmp_path)
    (spec,) = plugin.moorage_credential_interceptors()
    tested = InterceptorChain([BuiltInterceptor(spec, spec.build(context), "oauth")])
    await tested.run(call(tokens, extra_token_params={"assertion": "s3cret-assertion"}), Server())
    redact = context.service(Redactor).redact
    assert redact("access-token-1 s3cret-of-client s3cret-assertion") == "*** *** ***"


@pytest.mark.parametrize(
    ("block", "says"),
    [
        ({}, "token_url"),
        ({"token_url": "ftp://h/t", "client_id": "c"}, "http or https"),
        ({"token_url": "http://u:s3cret@h/t", "client_id": "c"}, "user name or password"),
        ({"token_url": "http://h/t"}, "needs client_id"),
        (
            {"token_url": "http://h/t", "grant_type": "refresh_token", "refresh_token": ""},
            "needs refresh_token",
        ),
        ({"token_url": "http://h/t", "client_id": "c", "grant_type": "password"}, "grant_type"),
        ({"token_url": "http://h/t", "client_id": "c", "refresh_skew_seconds": float("nan")}, "finite"),
        ({"token_url": "http://h/t", "client_id": "c", "client_secret": ["s3cret"]}, "client_secret"),
    ],
)
def test_a_block_that_cannot_work_is_refused_at_load(block: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says) as caught:
        OAuth.model_validate(block)
    assert "s3cret" not in str(caught.value)


def test_the_section_hides_its_secrets_and_warns_of_reserved_parameters() -> None:
    (section,) = plugin.moorage_config_sections()
    assert section.check is not None
    fields = {"token_url": "http://h/t?k=s3cret", "client_id": "c", "client_secret": "s3cret"}
    block = OAuth.model_validate({**fields, "extra_token_params": {"Scope": "s3cret", "resource": "r"}})
    assert "s3cret" not in repr(block)
    (warning,) = section.check("crm", block, {})
    assert "'crm'" in warning
    assert "Scope" in warning
    assert "s3cret" not in warning
