"""What a GET shows (ADMIN-1; C13)."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from support.extensions import SECTION_SET, SECTIONS, Extensions

from moorage.config import SectionSet, masked
from moorage.contract import ConfigSection


def shown(entry: Any, sections: SectionSet = SECTION_SET) -> Any:
    return masked({"mcpServers": {"s": entry}, "mcpInterceptors": ["m:b"]}, sections)["mcpServers"]["s"]


@pytest.mark.req("ADMIN-1", "ADMIN-7")
def test_only_servers_are_shown() -> None:
    assert masked({"mcpInterceptors": ["m:b"], "x": 1}, SECTION_SET) == {"mcpServers": {}}
    assert masked({"mcpServers": {"s": None}, "x": 1}, SECTION_SET) == {"mcpServers": {"s": None}}


@pytest.mark.req("ADMIN-1")
def test_env_and_headers() -> None:
    entry = {
        "command": "npx",
        "env": {
            "LITERAL": "v",
            "P": "$P",
            "Q": "${Q}",
            "D": "${D:-default}",
            "E": "${D:-}",
            "M": "a${P}",
            "EMPTY": "",
            "N": 5,
        },
        "headers": {"A": "Bearer ${T}", "B": "Bearer literal", "C": "Bearer $T", "D": "Token ${T:-d}"},
    }
    assert shown(entry) == {
        "command": "npx",
        "env": {
            "LITERAL": "***",
            "P": "$P",
            "Q": "${Q}",
            "D": "${D:-***}",
            "E": "${D:-}",
            "M": "***",
            "EMPTY": "",
            "N": "***",
        },
        "headers": {"A": "Bearer ${T}", "B": "***", "C": "***", "D": "Token ${T:-***}"},
    }


@pytest.mark.req("ADMIN-1")
def test_sections_mask_what_they_declare() -> None:
    entry = {
        "url": "http://h",
        "oauth": {
            "token_url": "https://u:pw@t/token?api_key=planted",
            "client_id": "id",
            "client_secret": "planted",
            "refresh_token": "$R",
            "extra_token_params": {"resource": "planted"},
            "api_key": "planted",
            "custom": {"apiKey": "planted", "url": "x"},
        },
        "user_auth": {"header": "Authorization", "users": {"alice": "planted", "bob": "$B", "carol": None}},
        "headers_from_context": {
            "headers": {"Authorization": "tenant_token", "X-Api-Key": "key"},
            "secret": "planted",
        },
    }
    result = shown(entry)
    assert "planted" not in json.dumps(result)
    assert result["oauth"] == {
        "token_url": "https://***:***@t/token?api_key=***",
        "client_id": "id",
        "client_secret": None,
        "refresh_token": "$R",
        "extra_token_params": {"resource": None},
        "api_key": "***",
        "custom": {"apiKey": "***", "url": "x"},
    }
    assert result["user_auth"] == {
        "header": "Authorization",
        "users": {"alice": "***", "bob": "$B", "carol": None},
    }
    assert result["headers_from_context"]["headers"] == {"Authorization": "tenant_token", "X-Api-Key": "key"}


@pytest.mark.req("ADMIN-1")
@pytest.mark.parametrize(
    "key",
    [
        "api_key",
        "api-key",
        "apiKey",
        "APIKey",
        "apikey",
        "X-Api-Key",
        "token",
        "accessToken",
        "password",
        "clientSecret",
        "private_key",
        "authorization",
        "credentials",
        "db_passwd",
        "sessionId",
        "tokens",
        "connection_string",
        "AWS_SECRET_ACCESS_KEY",
        "PAT",
    ],
)
def test_extra_keys_that_look_secret(key: str) -> None:
    entry = {key: "v", "deep": [{key: {"any": ["v"]}}], "tools": {key: {key: "v"}}}
    assert shown(entry) == {key: "***", "deep": [{key: {"any": ["***"]}}], "tools": {key: {key: "***"}}}


@pytest.mark.req("ADMIN-1")
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("max_tokens", 5),
        ("token_url", "http://t"),
        ("secret_name", "x"),
        ("password_file", "/run/p"),
        ("description", "the token is needed"),
        ("monkey", "x"),
        ("keyboard", "x"),
        ("author", "x"),
        ("requires_auth", True),
        ("api_key", "$API_KEY"),
        ("autoApprove", ["get_token"]),
    ],
)
def test_what_does_not_look_secret(key: str, value: Any) -> None:
    assert shown({key: value}) == {key: value}


@pytest.mark.req("ADMIN-1")
@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://h/mcp", "https://h/mcp"),
        ("https://u:${PW}@h/mcp?key=${Q}", "https://***:${PW}@h/mcp?key=${Q}"),
        ("https://u:p@h:8/mcp?key=k&x=1&token=t#f", "https://***:***@h:8/mcp?key=***&x=1&token=***#f"),
        ("https://tok@h/", "https://***@h/"),
        ("https://u:p@ss@h/", "https://***:***@h/"),
        ("https://h/?page=2&api-key=", "https://h/?page=2&api-key="),
        ("https://h/?sig=abc%3D", "https://h/?sig=***"),
        ("https://h/sk-abcdefghijklmnop1234/mcp", "https://h/***/mcp"),
        ("https://${H}/?token=${T:-literal}", "https://${H}/?token=${T:-***}"),
        ("$URL", "$URL"),
        ("https://h/?author=x", "https://h/?author=x"),
    ],
)
def test_urls(url: str, expected: str) -> None:
    assert shown({"url": url}) == {"url": expected}


@pytest.mark.req("ADMIN-1")
@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["-y", "srv", "--api-key", "$MCP_TOKEN"], ["-y", "srv", "--api-key", "$MCP_TOKEN"]),
        (["srv", "--api-key", "v", "x"], ["srv", "--api-key", "***", "x"]),
        (["--api-key=v", "--token=${T}"], ["--api-key=***", "--token=${T}"]),
        (["--password", "--verbose", "x"], ["--password", "--verbose", "x"]),
        (
            ["-e", "API_TOKEN=v", "-e", "API_TOKEN", "-e", "DEBUG=1"],
            ["-e", "API_TOKEN=***", "-e", "API_TOKEN", "-e", "DEBUG=1"],
        ),
        (["-c", "srv --api-key v --other w"], ["-c", "srv --api-key *** --other w"]),
        (["--header", "Authorization: Bearer v"], ["--header", "Authorization: ***"]),
        (["--header", "Authorization:${AUTH}"], ["--header", "Authorization:${AUTH}"]),
        (["-H", "X-Any: v"], ["-H", "X-Any: ***"]),
        (["Authorization: Bearer ${T}"], ["Authorization: Bearer ${T}"]),
        (["postgresql://u:p@h/db"], ["postgresql://***:***@h/db"]),
        (["--db=postgresql://u:p@h/db"], ["--db=postgresql://***:***@h/db"]),
        (["Server=x;Password=v;Db=y"], ["Server=x;Password=***;Db=y"]),
        (["--config", '{"apiKey": "v"}'], ["--config", "***"]),
        (["--config", '{"name": "v"}'], ["--config", '{"name": "v"}']),
        (["ghp_abcdefghijklmnopqrstuvwx"], ["***"]),
        (["--token", 5, "x"], ["--token", 5, "x"]),
        (["file:///a/b", "@scope/pkg@1.2"], ["file:///a/b", "@scope/pkg@1.2"]),
    ],
)
def test_arguments(args: list[Any], expected: list[Any]) -> None:
    assert shown({"command": "x", "args": args}) == {"command": "x", "args": expected}


@pytest.mark.req("ADMIN-1", "PLUG-4")
def test_a_block_without_its_plugin_is_secret_as_a_whole() -> None:
    sections = SectionSet((), missing_distribution={"user_auth": "moorage-plugins"}.get)
    assert shown({"user_auth": {"users": {"alice": "planted"}, "n": 1, "p": "$P"}}, sections) == {
        "user_auth": {"users": {"alice": "***"}, "n": "***", "p": "$P"}
    }

    def fails() -> Any:
        raise ImportError

    broken = SectionSet([ConfigSection("user_auth", fails)])
    assert shown({"user_auth": {"users": {"alice": "planted"}}}, broken)["user_auth"] == {
        "users": {"alice": "***"}
    }


@pytest.mark.req("ADMIN-1", "CONF-7")
@pytest.mark.parametrize(
    "entry",
    [
        {"env": "planted"},
        {"env": ["planted", {"x": "planted"}]},
        {"headers": [["Authorization", "planted"]]},
        {"oauth": "planted"},
        {"oauth": ["planted"]},
        {"oauth": {"client_secret": ["planted", {"x": "planted"}]}},
        {"oauth": {"extra_token_params": "planted"}},
        {"user_auth": {"users": "planted"}},
        {"user_auth": {"users": ["planted"]}},
        {"url": ["https://u:planted@h"]},
        {"args": "--token=planted"},
        {"args": [["--token", "planted"]]},
        ["--token", "planted"],
        "https://planted@h",
    ],
)
def test_secrets_in_broken_entries_are_masked_too(entry: Any) -> None:
    assert "planted" not in json.dumps(shown(entry))


@pytest.mark.req("CONF-7", "CONF-8")
def test_numbers_that_json_cannot_hold_are_shown_as_text() -> None:
    result = shown({"tool_call_timeout": math.nan, "session_init_timeout": -math.inf})
    assert result == {"tool_call_timeout": "nan", "session_init_timeout": "-inf"}


@pytest.mark.req("PLUG-5")
def test_a_section_can_mask_by_itself() -> None:
    def mask(block: Any) -> Any:
        block.pop("hidden", None)
        return block | {"note": "masked by the plugin"}

    def fails(block: Any) -> Any:
        raise RuntimeError

    oauth = SECTIONS[0]
    model = oauth.load_model
    stored = {"token_url": "http://t", "hidden": "planted", "client_secret": "planted"}
    assert shown(
        {"x": stored}, SectionSet([ConfigSection("x", model, mask=mask, secret_paths=("client_secret",))])
    ) == {"x": {"token_url": "http://t", "client_secret": "***", "note": "masked by the plugin"}}
    assert "hidden" in stored
    result = shown({"x": stored}, SectionSet([ConfigSection("x", model, mask=fails)]))
    assert "planted" not in json.dumps(result)


@pytest.mark.req("CRED-9")
def test_every_secret_in_force_is_announced_resolved(tmp_path: Path) -> None:
    announced: list[str] = []
    config = Extensions(tmp_path, {"T": "$resolved-token", "PW": "resolved-pw"}, on_secret=announced.append)
    config.write(
        {
            "r": {
                "url": "https://u:${PW}@h/?key=literal-key",
                "headers": {"Authorization": "Bearer ${T}", "X": "$T"},
                "user_auth": {"users": {"a": "literal-user"}},
                "api_key": "literal-extra",
            },
            "l": {"command": "x", "args": ["--token", "$T", "plain"], "env": {"E": "literal-env"}},
            "broken": {"command": "x", "env": {"E": "literal-broken"}, "tool_call_timeout": 0},
        }
    )
    config.file.current()
    assert set(announced) == {
        "u",
        "resolved-pw",
        "literal-key",
        "Bearer $resolved-token",
        "$resolved-token",
        "literal-user",
        "literal-extra",
        "literal-env",
        "literal-broken",
    }
    announced.clear()
    config.write({"l": {"command": "x", "env": {"E": "literal-env", "F": "literal-new"}}})
    config.file.current()
    assert announced == ["literal-new"]


NASTY = {
    "letters": "a" * 400_000,
    "tokens": "eyJ" * 130_000,
    "dotted-tokens": "eyJ." * 100_000,
    "assignments": "token=x " * 50_000,
    "options": "--token x " * 40_000,
    "schemes": "a://" * 100_000,
    "placeholders": "token=$X " * 40_000,
    "blanks": "-a" + " " * 400_000,
    "keys": "-----BEGIN " * 30_000,
}


@pytest.mark.req("ADMIN-1")
@pytest.mark.timeout(30)
@pytest.mark.parametrize("kind", sorted(NASTY))
def test_masking_takes_time_in_proportion_to_the_text(kind: str) -> None:
    """The file's lock is held meanwhile. In proportion is a second at most; with the square, minutes."""
    text = NASTY[kind]
    raw = {"mcpServers": {"s": {"command": "x", "args": [text], "note": text, "url": text}}}
    assert masked(raw, SectionSet(()))["mcpServers"].keys() == {"s"}


@pytest.mark.req("ADMIN-1")
@pytest.mark.parametrize(
    "text",
    ["x eyJhbGciOiJI.eyJzdWIiOiIx.c2ln y", "https://h/?x=eyJhbGciOiJI.eyJzdWIiOiIx.", "1https://u:pass@h/"],
)
def test_a_web_token_and_user_info_are_masked_wherever_they_stand(text: str) -> None:
    shown = masked({"mcpServers": {"s": {"command": "x", "args": [text]}}}, SectionSet(()))
    assert "***" in str(shown)
    assert "eyJzdWIiOiIx" not in str(shown)
    assert "pass" not in str(shown)
