"""Rotated refresh tokens outlive the process and are shared by replicas, encrypted (CRED-3, CRED-9)."""

import asyncio
import os
import sqlite3
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from support.calls import OK, Server, server_config, tool_call
from support.credential_parts import gateway_context
from support.token_server import TokenServer, token_server

from moorage.calls.chain import BuiltInterceptor, InterceptorChain
from moorage.clock import SystemClock
from moorage.contract import ConfigError, CredentialDenied, Store, ToolCall
from moorage_drivers.sql.store import open_store
from moorage_plugins.oauth import line, plugin
from moorage_plugins.oauth.model import OAuth
from moorage_plugins.oauth.vault import KEY_VARIABLE, Vault

pytestmark = pytest.mark.req("CRED-3")


@pytest.fixture
def tokens() -> Iterator[TokenServer]:
    with token_server() as server:
        server.rotating = "seed-refresh-token"
        yield server


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "a key that both replicas share")


class Replica:
    """A gateway's chain on its own connection to the database."""

    def __init__(self, home: Path, url: str, stack: AsyncExitStack) -> None:
        self._home, self._url, self._stack = home, url, stack
        self.server = Server()

    async def start(self) -> "Replica":
        store = await self._stack.enter_async_context(open_store(self._url, SystemClock(), False))
        context = gateway_context(self._home, clock=SystemClock(), store=store)
        (spec,) = plugin.moorage_credential_interceptors()
        self.chain = InterceptorChain([BuiltInterceptor(spec, spec.build(context), "oauth")])
        (life,) = plugin.moorage_lifecycle()
        await self._stack.enter_async_context(life.open(context))
        return self

    async def ask(self, call: ToolCall) -> str:
        assert await self.chain.run(call, self.server) is OK
        return self.server.headers["Authorization"]


@pytest.fixture
async def replicas(tmp_path: Path, store_url: str) -> Any:
    async with AsyncExitStack() as stack:

        async def make() -> Replica:
            return await Replica(tmp_path / "home", store_url, stack).start()

        yield make


def call(tokens: TokenServer, **block: Any) -> ToolCall:
    section = OAuth.model_validate(
        {
            "token_url": tokens.url,
            "grant_type": "refresh_token",
            "refresh_token": "seed-refresh-token",
            **block,
        }
    )
    return tool_call(server_config({"oauth": section}))


async def test_a_restart_uses_the_newest_refresh_token(tokens: TokenServer, replicas: Any) -> None:
    tokens.expires_in = 2
    assert await (await replicas()).ask(call(tokens)) == "Bearer access-token-1"
    assert await (await replicas()).ask(call(tokens)) == "Bearer access-token-2"
    assert [form["refresh_token"] for form in tokens.forms] == ["seed-refresh-token", "refresh-token-1"]
    assert not tokens.reused


async def test_replicas_that_renew_at_once_ask_once(tokens: TokenServer, replicas: Any) -> None:
    made = [await replicas() for _ in range(3)]
    tokens.held.clear()
    asked = [asyncio.create_task(one.ask(call(tokens))) for one in made for _ in range(5)]
    while not tokens.forms:
        await asyncio.sleep(0.01)
    tokens.held.set()
    assert set(await asyncio.gather(*asked)) == {"Bearer access-token-1"}
    assert len(tokens.forms) == 1


async def test_a_changed_block_continues_the_line_with_a_token_of_its_own(
    tokens: TokenServer, replicas: Any
) -> None:
    replica = await replicas()
    assert await replica.ask(call(tokens)) == "Bearer access-token-1"
    assert await replica.ask(call(tokens, scope="more")) == "Bearer access-token-2"
    assert not tokens.reused


async def test_a_replica_that_died_with_the_lease_holds_nobody_up_for_long(
    tokens: TokenServer, replicas: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line, "LEASE_SECONDS", 0.5)
    first, second = await replicas(), await replicas()
    tokens.held.clear()
    dies = asyncio.create_task(first.ask(call(tokens)))
    while not tokens.forms:
        await asyncio.sleep(0.01)
    takes_over = asyncio.create_task(second.ask(call(tokens)))
    while len(tokens.forms) < 2:
        await asyncio.sleep(0.01)
    tokens.rotating = None  # what matters here is who waits for whom
    tokens.held.set()
    await asyncio.gather(dies, takes_over)
    assert len(tokens.forms) == 2


async def test_a_refused_renewal_gives_the_lease_back(tokens: TokenServer, replicas: Any) -> None:
    from starlette.responses import JSONResponse

    tokens.answer = lambda _: JSONResponse({"error": "temporarily_unavailable"}, 503)
    with pytest.raises(CredentialDenied, match="503"):
        await (await replicas()).ask(call(tokens))
    tokens.answer = tokens._ordinary
    assert await asyncio.wait_for((await replicas()).ask(call(tokens)), 5) == "Bearer access-token-1"


async def test_a_token_that_could_not_be_stored_is_used_and_stored_later(
    tokens: TokenServer, tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line, "WAIT_SECONDS", 0.001)
    tokens.expires_in = 2
    context = gateway_context(tmp_path, clock=SystemClock(), store=store)
    (spec,) = plugin.moorage_credential_interceptors()
    chain = InterceptorChain([BuiltInterceptor(spec, spec.build(context), "oauth")])
    (life,) = plugin.moorage_lifecycle()
    memos = type(store.memos)
    real, fails = memos.swap, True

    async def swap(self: Any, name: str, expected: Any, value: Any) -> bool:
        if fails and value.get("sealed"):
            raise OSError("disk full")
        return await real(self, name, expected, value)

    monkeypatch.setattr(memos, "swap", swap)
    monkeypatch.setattr(line, "LEASE_SECONDS", 0.1)
    async with life.open(context):
        server = Server()
        await chain.run(call(tokens), server)
        fails = False
        await chain.run(call(tokens, scope="x"), server)
    assert [form["refresh_token"] for form in tokens.forms] == ["seed-refresh-token", "refresh-token-1"]
    assert not tokens.reused


@pytest.mark.req("CRED-9")
async def test_nothing_in_the_database_can_be_read_without_the_key(
    tokens: TokenServer, tmp_path: Path, sqlite_template: Path, replicas: Any, store_url: str
) -> None:
    if not store_url.startswith("sqlite"):
        pytest.skip("the same rows; files are searched where there is a file")
    await (await replicas()).ask(call(tokens, client_secret="s3cret-of-client", client_id="me"))
    path = Path(store_url.partition("///")[2])
    with sqlite3.connect(path) as connection:
        (stored,) = connection.execute("SELECT count(*) FROM memos WHERE name LIKE 'oauth:%'").fetchone()
    connection.close()
    assert stored == 1
    everything = b"".join(p.read_bytes() for p in path.parent.glob("moorage.db*"))
    for secret in (b"refresh-token", b"access-token", b"s3cret-of-client"):
        assert secret not in everything


async def test_another_key_falls_back_to_the_configured_token(
    tokens: TokenServer, replicas: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await (await replicas()).ask(call(tokens))
    monkeypatch.setenv(KEY_VARIABLE, "another key altogether")
    with pytest.raises(CredentialDenied, match="invalid_grant"):
        await (await replicas()).ask(call(tokens))
    assert tokens.forms[-1]["refresh_token"] == "seed-refresh-token"


def test_the_key_file_is_made_once_and_must_be_ours_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    sealed = Vault.open(home, {}).seal({"a": 1})
    assert (home / "secret.key").stat().st_mode & 0o777 == 0o600
    assert Vault.open(home, {}).unseal(sealed) == {"a": 1}
    assert [p.name for p in home.iterdir()] == ["secret.key"]
    assert Vault.open(home, {KEY_VARIABLE: "from the environment"}).unseal(sealed) is None
    os.chmod(home / "secret.key", 0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        Vault.open(home, {})
    os.chmod(home / "secret.key", 0o600)
    (home / "secret.key").write_text("")
    with pytest.raises(ConfigError, match="holds no key"):
        Vault.open(home, {})
    with pytest.raises(ConfigError, match=KEY_VARIABLE) as caught:
        Vault.open(home, {KEY_VARIABLE: "short"})
    assert "short" not in str(caught.value).replace("too short", "")
