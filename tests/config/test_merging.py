"""Masked secrets are put back, or refused (ADMIN-2; C14)."""

import copy
from typing import Any

import pytest
from pydantic import BaseModel
from support.extensions import SECTION_SET

from moorage.config import ConfigRejected, SectionSet, masked, merge
from moorage.contract import ConfigError, ConfigSection

REMOTE: dict[str, Any] = {
    "type": "http",
    "url": "https://u:pw@h.example/mcp?key=query-secret&page=1",
    "headers": {"Authorization": "Bearer header-secret", "X-Plain": "other-secret", "X-Env": "${T}"},
    "oauth": {
        "token_url": "https://auth.example/token",
        "client_secret": "client-secret-1",
        "refresh_token": "refresh-1",
    },
    "user_auth": {"users": {"alice": "alice-secret", "bob": "$BOB"}},
    "note": "free text",
}
LOCAL: dict[str, Any] = {
    "command": "npx",
    "args": ["-y", "srv", "--api-key", "arg-secret", "--token=tok-secret", "-H", "X-A: h-secret", "last"],
    "env": {"K": "env-secret", "P": "$P"},
}
STORED: dict[str, Any] = {
    "mcpServers": {"h": REMOTE, "s": LOCAL},
    "mcpInterceptors": ["m:b"],
    "custom": {"kept": True},
}
VALUES = [
    f"{word}-secret"
    for word in ("query", "header", "other", "alice", "arg", "tok", "h", "env", "first", "second")
] + ["client-secret-1", "refresh-1", "u:pw"]


def view() -> dict[str, Any]:
    return copy.deepcopy(masked(STORED, SECTION_SET))


def put(body: dict[str, Any], stored: dict[str, Any] = STORED) -> dict[str, Any]:
    before = copy.deepcopy((body, stored))
    try:
        return merge(body, stored, SECTION_SET)
    finally:
        assert (body, stored) == before


def rejected(body: dict[str, Any], stored: dict[str, Any] = STORED) -> dict[str, str]:
    with pytest.raises(ConfigRejected) as caught:
        put(body, stored)
    assert not any(value in str(caught.value) for value in VALUES)
    return {fault.where: fault.message for fault in caught.value.faults}


@pytest.mark.req("ADMIN-2")
def test_the_same_body_changes_nothing() -> None:
    assert put(view()) == STORED


@pytest.mark.req("ADMIN-2")
def test_one_changed_header_leaves_the_others() -> None:
    body = view()
    body["mcpServers"]["h"]["headers"]["X-Plain"] = "new"
    headers = put(body)["mcpServers"]["h"]["headers"]
    assert headers == {"Authorization": "Bearer header-secret", "X-Plain": "new", "X-Env": "${T}"}


@pytest.mark.req("ADMIN-2")
def test_the_mask_for_a_header_that_is_not_stored() -> None:
    body = view()
    body["mcpServers"]["h"]["headers"]["X-New"] = "***"
    assert list(rejected(body)) == ["mcpServers.h.headers.X-New"]


@pytest.mark.req("ADMIN-2")
@pytest.mark.parametrize("remove_old", [True, False])
def test_masks_on_a_new_or_renamed_server(remove_old: bool) -> None:
    body = view()
    body["mcpServers"]["s2"] = copy.deepcopy(body["mcpServers"]["s"])
    if remove_old:
        del body["mcpServers"]["s"]
    faults = rejected(body)
    assert set(faults) == {
        "mcpServers.s2.args[3]",
        "mcpServers.s2.args[4]",
        "mcpServers.s2.args[6]",
        "mcpServers.s2.env.K",
    }


@pytest.mark.req("ADMIN-2")
def test_a_removed_header_is_no_source_for_another() -> None:
    body = view()
    del body["mcpServers"]["h"]["headers"]["X-Plain"]
    body["mcpServers"]["h"]["headers"]["X-Other"] = "***"
    assert list(rejected(body)) == ["mcpServers.h.headers.X-Other"]


@pytest.mark.req("ADMIN-2")
@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example/mcp",
        "https://h.example:8443/mcp",
        "http://h.example/mcp",
        "https://h.example.evil/mcp",
        "$URL",
        "https://${HOST}/mcp",
        None,
    ],
)
def test_secrets_do_not_follow_to_another_host(url: str | None) -> None:
    body = view()
    body["mcpServers"]["h"]["url"] = url
    assert set(rejected(body)) == {
        "mcpServers.h.headers.Authorization",
        "mcpServers.h.headers.X-Plain",
        "mcpServers.h.oauth.client_secret",
        "mcpServers.h.oauth.refresh_token",
        "mcpServers.h.user_auth.users.alice",
    }
    # Nor by leaving them out, which keeps them as stored.
    assert set(rejected({"mcpServers": {"h": {"url": url}}})) == set(rejected(body))


@pytest.mark.req("ADMIN-2")
def test_secrets_that_are_sent_again_or_removed_may_go_anywhere() -> None:
    server = {
        "url": "https://new.example/mcp",
        "headers": {"Authorization": "Bearer header-secret", "X-Env": "${T}"},
        "oauth": None,
        "user_auth": {"users": {"bob": "$BOB"}},
    }
    merged = put({"mcpServers": {"h": server}})["mcpServers"]["h"]
    assert merged == {
        "type": "http",
        "url": "https://new.example/mcp",
        "headers": {"Authorization": "Bearer header-secret", "X-Env": "${T}"},
        "user_auth": {"users": {"bob": "$BOB"}},
        "note": "free text",
    }


@pytest.mark.req("ADMIN-2")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("https://h/a", "https://h/b?page=2"),
        ("https://h/a", "https://H:443/a"),
        ("http://h/a", "https://h/a"),
        ("https://${H}/a", "https://${H}/b"),
    ],
)
def test_another_path_on_the_same_host_keeps_secrets(old: str, new: str) -> None:
    stored = {"mcpServers": {"h": {"url": old, "headers": {"A": "secret"}}}}
    merged = put({"mcpServers": {"h": {"url": new, "headers": {"A": "***"}}}}, stored)
    assert merged["mcpServers"]["h"] == {"url": new, "headers": {"A": "secret"}}


@pytest.mark.req("ADMIN-2")
def test_a_stored_mask_is_an_explicit_error() -> None:
    stored = {"mcpServers": {"s": {"command": "x", "env": {"K": "***"}}}}
    assert "mask" in rejected(masked(stored, SECTION_SET), stored)["mcpServers.s.env.K"]
    assert put({"mcpServers": {"s": {"env": {"K": "real"}}}}, stored)["mcpServers"]["s"]["env"] == {
        "K": "real"
    }


@pytest.mark.req("ADMIN-2")
def test_a_remote_server_that_becomes_local_keeps_no_masked_header() -> None:
    body = view()
    body["mcpServers"]["h"] |= {"type": "stdio", "command": "npx", "args": ["srv"]}
    assert "mcpServers.h.headers.Authorization" in rejected(body)


@pytest.mark.req("ADMIN-2")
@pytest.mark.parametrize(
    "change",
    [
        {"command": "uvx"},
        {"args": ["-y", "evil", "--api-key", "***", "--token=***", "-H", "X-A: ***", "last"]},
        {"args": ["-y", "--package", "evil", "srv", "--api-key", "***"]},
        {"args": ["--user-agent", "x", "srv"]},
        {"cwd": "/tmp/evil"},
    ],
)
def test_secrets_do_not_follow_to_another_program(change: dict[str, Any]) -> None:
    body = view()
    body["mcpServers"]["s"] |= change
    assert "mcpServers.s.env.K" in rejected(body)


@pytest.mark.req("ADMIN-2")
def test_of_an_unknown_program_every_argument_counts() -> None:
    stored = {"mcpServers": {"s": {"command": "docker", "args": ["run", "img"], "env": {"K": "secret"}}}}
    body = {"mcpServers": {"s": {"command": "docker", "args": ["run", "evil"], "env": {"K": "***"}}}}
    assert list(rejected(body, stored)) == ["mcpServers.s.env.K"]


@pytest.mark.req("ADMIN-2")
@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (
            ["-y", "srv", "--debug", "--token=***", "--api-key", "***", "-H", "X-A: ***"],
            ["-y", "srv", "--debug", "--token=tok-secret", "--api-key", "arg-secret", "-H", "X-A: h-secret"],
        ),
        (["-y", "srv"], ["-y", "srv"]),
        (["-y", "srv", "--api-key", "$NEW"], ["-y", "srv", "--api-key", "$NEW"]),
        (["-y", "srv", "--token", "***"], "args[3]"),
        (["-y", "srv", "***"], "args[2]"),
        (["-y", "srv", "--api-key", "pre-***"], "args[3]"),
        (["-y", "srv", "-H", "X-B: ***"], "args[3]"),
    ],
)
def test_arguments_find_their_secret_by_what_it_is(args: list[str], expected: Any) -> None:
    body = view()
    body["mcpServers"]["s"]["args"] = args
    if isinstance(expected, str):
        assert list(rejected(body)) == [f"mcpServers.s.{expected}"]
    else:
        assert put(body)["mcpServers"]["s"]["args"] == expected


@pytest.mark.req("ADMIN-2")
def test_secrets_of_one_name_are_never_exchanged() -> None:
    args = ["srv", "--token", "first-secret", "--token", "second-secret"]
    stored = {"mcpServers": {"s": {"command": "npx", "args": args}}}
    body = {"mcpServers": {"s": {"args": ["srv", "--token", "***"]}}}
    assert list(rejected(body, stored)) == ["mcpServers.s.args[2]"]
    both = {"mcpServers": {"s": {"args": ["srv", "-v", "--token", "***", "--token", "***"]}}}
    assert put(both, stored)["mcpServers"]["s"]["args"][2:] == args[1:]


@pytest.mark.req("ADMIN-2")
def test_secrets_in_a_url_survive_an_edit_of_the_rest() -> None:
    body = view()
    body["mcpServers"]["h"]["url"] = "https://***:***@h.example/v2/mcp?page=2&key=***"
    url = put(body)["mcpServers"]["h"]["url"]
    assert url == "https://u:pw@h.example/v2/mcp?page=2&key=query-secret"
    body["mcpServers"]["h"]["url"] = "https://h.example/mcp?token=***"
    assert list(rejected(body)) == ["mcpServers.h.url"]
    body["mcpServers"]["h"]["url"] = "https://***:***@evil.example/mcp"
    assert "mcpServers.h.url" in rejected(body)


@pytest.mark.req("ADMIN-2")
def test_null_keeps_an_oauth_secret_and_an_empty_string_clears_it() -> None:
    body = view()
    oauth = body["mcpServers"]["h"]["oauth"]
    assert oauth["client_secret"] is None
    oauth |= {"refresh_token": "", "scope": "new"}
    merged = put(body)["mcpServers"]["h"]["oauth"]
    assert merged == {
        "token_url": "https://auth.example/token",
        "client_secret": "client-secret-1",
        "scope": "new",
    }
    del oauth["client_secret"]  # clients drop what is null
    assert put(body)["mcpServers"]["h"]["oauth"] == merged
    oauth["client_secret"] = "$FROM_ENV"
    assert put(body)["mcpServers"]["h"]["oauth"]["client_secret"] == "$FROM_ENV"
    oauth["client_secret"] = "***"
    assert put(body)["mcpServers"]["h"]["oauth"] == merged


@pytest.mark.req("ADMIN-2")
def test_null_on_a_server_without_that_secret_is_no_value() -> None:
    body = {
        "mcpServers": {"n": {"url": "https://n", "oauth": {"token_url": "https://t", "client_secret": None}}}
    }
    assert put(body)["mcpServers"]["n"]["oauth"] == {"token_url": "https://t"}


@pytest.mark.req("ADMIN-2")
def test_an_oauth_secret_does_not_follow_to_another_token_host() -> None:
    body = view()
    body["mcpServers"]["h"]["oauth"]["token_url"] = "https://evil.example/token"
    assert set(rejected(body)) == {"mcpServers.h.oauth.client_secret", "mcpServers.h.oauth.refresh_token"}
    body["mcpServers"]["h"]["oauth"]["token_url"] = "https://auth.example/v2/token"
    assert put(body)["mcpServers"]["h"]["oauth"]["client_secret"] == "client-secret-1"


@pytest.mark.req("ADMIN-2", "CONF-1")
def test_what_is_left_out_stays_and_null_removes() -> None:
    body: dict[str, Any] = {"mcpServers": {"h": {"note": None, "headers": {"X-Env": "${T}"}}, "s": {}}}
    merged = put(body)
    assert merged["mcpServers"]["s"] == LOCAL
    expected = {k: v for k, v in REMOTE.items() if k != "note"} | {"headers": {"X-Env": "${T}"}}
    assert merged["mcpServers"]["h"] == expected


@pytest.mark.req("ADMIN-2", "CONF-8")
def test_null_is_a_value_of_a_timeout() -> None:
    body = {"mcpServers": {"s": {"session_init_timeout": None}}}
    assert put(body)["mcpServers"]["s"] == {**LOCAL, "session_init_timeout": None}


@pytest.mark.req("ADMIN-2")
def test_servers_that_are_not_sent_are_removed() -> None:
    assert put({"mcpServers": {}}) == {**STORED, "mcpServers": {}}
    assert put({"mcpServers": {}}, {}) == {}


@pytest.mark.req("ADMIN-7")
def test_nothing_beside_the_servers_can_be_written() -> None:
    body = view()
    assert list(rejected({**body, "mcpInterceptors": ["evil:b"]})) == ["mcpInterceptors"]
    assert list(rejected({**body, "new": 1})) == ["new"]
    assert put({**body, "mcpInterceptors": ["m:b"]}) == STORED
    assert list(rejected({})) == ["mcpServers"]
    not_an_object: Any = [1]
    assert list(rejected(not_an_object)) == ["the body"]
    assert list(rejected({"mcpServers": None})) == ["mcpServers"]


@pytest.mark.req("ADMIN-2")
def test_all_faults_are_told_at_once() -> None:
    body = view()
    body["mcpServers"]["h"]["headers"]["X-1"] = "***"
    body["mcpServers"]["s"]["env"]["X-2"] = "***"
    assert set(rejected(body)) == {"mcpServers.h.headers.X-1", "mcpServers.s.env.X-2"}


@pytest.mark.req("ADMIN-2")
def test_the_mask_never_gets_into_any_text() -> None:
    stored = {
        "mcpServers": {"s": {"command": "x", "note": "uses sk-abcdefghijklmnop1234 today", "a": "*** b"}}
    }
    assert put(masked(stored, SECTION_SET), stored) == stored
    body = {"mcpServers": {"s": {"note": "uses *** tomorrow", "a": "*** b"}}}
    assert list(rejected(body, stored)) == ["mcpServers.s.note"]


@pytest.mark.req("ADMIN-2", "PLUG-5")
def test_objects_in_a_list_find_their_secret_by_name() -> None:
    items = [{"name": "a", "token": "secret-a"}, {"name": "b", "token": "secret-b"}]
    stored = {"mcpServers": {"s": {"command": "x", "items": items}}}
    swapped = [{"name": "b", "token": "***", "new": 1}, {"name": "a", "token": "***"}]
    merged = put({"mcpServers": {"s": {"items": swapped}}}, stored)["mcpServers"]["s"]["items"]
    assert merged == [{"name": "b", "token": "secret-b", "new": 1}, {"name": "a", "token": "secret-a"}]
    renamed = [{"name": "c", "token": "***"}]
    body = {"mcpServers": {"s": {"items": renamed}}}
    assert list(rejected(body, stored)) == ["mcpServers.s.items[0].token"]


class Anything(BaseModel):
    value: str = ""


@pytest.mark.req("PLUG-5")
def test_a_section_can_merge_by_itself() -> None:
    def own_merge(submitted: Any, stored: Any) -> Any:
        if submitted.get("value") == "refuse":
            raise ConfigError("not this one")
        if submitted.get("value") == "fail":
            raise RuntimeError("planted")
        return {**submitted, "value": (stored or {}).get("value", "fresh")}

    section = ConfigSection(
        "own", lambda: Anything, mask=lambda block: {"value": "(hidden)"}, merge=own_merge
    )
    sections = SectionSet([section])
    stored = {"mcpServers": {"s": {"command": "x", "own": {"value": "kept"}}}}
    assert merge(masked(stored, sections), stored, sections) == stored
    body = {"mcpServers": {"s": {"own": {"value": "(hidden)", "more": 1}}, "n": {"own": {}}}}
    merged = merge(body, stored, sections)["mcpServers"]
    assert merged["s"]["own"] == {"value": "kept", "more": 1}
    assert merged["n"]["own"] == {"value": "fresh"}
    for value, words in (("refuse", "not this one"), ("fail", "RuntimeError")):
        with pytest.raises(ConfigRejected, match=words) as caught:
            merge({"mcpServers": {"s": {"own": {"value": value}}}}, stored, sections)
        assert "planted" not in str(caught.value)
