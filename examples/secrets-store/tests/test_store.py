"""One request however many calls wait; a cache that forgets; nothing in errors."""

import asyncio

import pytest
from moorage.testing import FakeClock
from pydantic import SecretStr
from vault import TOKEN, vault

from moorage_secrets_store.section import Settings
from moorage_secrets_store.store import NoSecret, SecretsStore


async def test_one_request_for_many_and_again_when_the_cache_has_ended() -> None:
    clock = FakeClock()
    with vault() as made:
        made.secrets["users/alice"] = {"token": "one"}
        store = SecretsStore(Settings(url=made.url, token=SecretStr(TOKEN), cache_seconds=30), clock)
        try:
            values = await asyncio.gather(*(store.read("users/alice", "token") for _ in range(20)))
            assert values == ["one"] * 20
            made.secrets["users/alice"] = {"token": "two"}
            await clock.advance(29)
            assert await store.read("users/alice", "token") == "one"
            await clock.advance(2)
            assert await store.read("users/alice", "token") == "two"
            assert len(made.reads) == 2
        finally:
            await store.aclose()


async def test_a_caller_who_leaves_does_not_fail_the_others() -> None:
    with vault() as made:
        made.secrets["users/alice"] = {"token": "one"}
        store = SecretsStore(Settings(url=made.url, token=SecretStr(TOKEN)), FakeClock())
        try:
            leaving = asyncio.create_task(store.read("users/alice", "token"))
            staying = asyncio.create_task(store.read("users/alice", "token"))
            await asyncio.sleep(0)
            leaving.cancel()
            assert await staying == "one"
        finally:
            await store.aclose()


@pytest.mark.parametrize("field", ["missing", "number", "empty"])
async def test_what_is_no_secret_is_told_without_quoting_anything(field: str) -> None:
    with vault() as made:
        made.secrets["users/alice"] = {"token": "the-value", "number": 7, "empty": ""}
        store = SecretsStore(Settings(url=made.url, token=SecretStr(TOKEN)), FakeClock())
        wrong = SecretsStore(Settings(url=made.url, token=SecretStr("wrong-token")), FakeClock())
        try:
            with pytest.raises(NoSecret) as caught:
                await store.read("users/alice", field)
            with pytest.raises(NoSecret, match="403") as denied:
                await wrong.read("users/alice", "token")
            for said in (str(caught.value), str(denied.value)):
                assert "the-value" not in said
                assert "token-of" not in said
        finally:
            await store.aclose()
            await wrong.aclose()
