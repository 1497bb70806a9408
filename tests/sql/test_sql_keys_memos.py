"""API keys (API-2, NOTE-6) and memos (PLUG-4, CRED-3)."""

import asyncio

import pytest
from support.clock import FakeClock

from moorage.contract import Conflict, Store


@pytest.mark.req("API-2")
async def test_a_key_is_found_by_its_hash_until_it_is_revoked(store: Store, clock: FakeClock) -> None:
    made = await store.keys.create(
        name="ci", user_id="alice", roles=frozenset({"admin", "user"}), key_hash="h1"
    )

    assert await store.keys.find("h1") == made
    assert (made.roles, made.created_at, made.revoked_at) == (frozenset({"admin", "user"}), clock.now(), None)
    assert await store.keys.find("h2") is None
    clock.move(1)
    revoked = await store.keys.revoke("ci")
    assert revoked is not None
    assert (revoked.key_id, revoked.revoked_at) == (made.key_id, clock.now())
    assert await store.keys.find("h1") is None
    assert await store.keys.revoke("ci") is None
    assert await store.keys.list() == [revoked]


@pytest.mark.req("API-2")
async def test_a_name_is_taken_while_its_key_lives(store: Store) -> None:
    async def make(number: int) -> object:
        return await store.keys.create(
            name="ci", user_id="alice", roles=frozenset({"user"}), key_hash=f"h{number}"
        )

    answers = await asyncio.gather(*(make(number) for number in range(6)), return_exceptions=True)

    assert sum(isinstance(answer, Conflict) for answer in answers) == 5
    (live,) = await store.keys.list()
    await store.keys.revoke(live.key_id)
    await make(9)
    assert [key.name for key in await store.keys.list()] == ["ci", "ci"]


@pytest.mark.req("NOTE-6")
async def test_a_user_s_roles_are_those_of_the_live_keys(store: Store) -> None:
    await store.keys.create(name="a", user_id="alice", roles=frozenset({"user"}), key_hash="h1")
    await store.keys.create(name="b", user_id="alice", roles=frozenset({"admin"}), key_hash="h2")
    await store.keys.create(name="c", user_id="bob", roles=frozenset({"metrics"}), key_hash="h3")

    assert await store.keys.roles_of("alice") == {"user", "admin"}
    await store.keys.revoke("b")
    assert await store.keys.roles_of("alice") == {"user"}
    assert await store.keys.roles_of("nobody") == frozenset()


@pytest.mark.req("PLUG-4", "BOUND-4")
async def test_a_memo_is_kept_replaced_and_removed(store: Store) -> None:
    assert await store.memos.get("sections") is None
    await store.memos.put("sections", {"oauth": ["dist", "\x00\ud800"], "n": None})
    assert await store.memos.get("sections") == {"oauth": ["dist", "\x00\ud800"], "n": None}
    await store.memos.put("sections", [])
    assert await store.memos.get("sections") == []
    await store.memos.put("sections", None)
    assert await store.memos.get("sections") is None


@pytest.mark.req("CRED-3")
async def test_a_swap_lands_only_on_the_expected_value(store: Store) -> None:
    memos = store.memos
    assert not await memos.swap("token", {"v": 1}, {"v": 2})
    assert await memos.swap("token", None, {"v": 1, "w": 2})
    assert not await memos.swap("token", None, {"v": 9})
    assert await memos.swap("token", {"w": 2, "v": 1}, {"v": 3})
    assert await memos.get("token") == {"v": 3}
    assert not await memos.swap("token", None, None)
    assert await memos.swap("token", {"v": 3}, None)
    assert await memos.swap("token", None, None)


@pytest.mark.req("CRED-3", "TASK-19")
async def test_of_swaps_at_once_one_lands(store: Store) -> None:
    first = await asyncio.gather(*(store.memos.swap("token", None, n) for n in range(1, 9)))
    now = await store.memos.get("token")
    second = await asyncio.gather(*(store.memos.swap("token", now, n) for n in range(11, 19)))

    assert (first.count(True), second.count(True)) == (1, 1)
