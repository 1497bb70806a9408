"""Entries of mcpServers (CONF-1, CONF-7, CONF-8; C21, C22)."""

from pathlib import Path
from typing import Any

import pytest
from support.extensions import Extensions

from moorage.contract import ServerConfig

URL = "http://h/mcp"


def load(
    tmp_path: Path, entry: Any, env: dict[str, str] | None = None
) -> tuple[ServerConfig | None, Extensions]:
    config = Extensions(tmp_path, env)
    config.write({"s": entry, "healthy": {"command": "ok"}})
    snapshot = config.file.current()
    assert "healthy" in snapshot.servers
    assert ("s" in snapshot.refused) == ("s" not in snapshot.servers)
    return snapshot.servers.get("s"), config


@pytest.mark.req("CONF-1")
@pytest.mark.parametrize(
    ("entry", "transport"),
    [
        ({"url": URL, "transport": "sse"}, "sse"),
        ({"url": URL}, "http"),
        ({"url": URL, "type": "streamable_http"}, "http"),
        ({"url": URL, "type": "streamable-http"}, "http"),
        ({"url": URL, "type": "streamableHttp"}, "http"),
        ({"url": URL, "transport": "streamable_http"}, "http"),
        ({"command": "x"}, "stdio"),
        ({"command": "x", "type": None, "url": None}, "stdio"),
        ({"command": "x", "type": "stdio", "url": URL}, "stdio"),
        ({"command": "x", "url": URL}, "http"),
    ],
)
def test_transports(tmp_path: Path, entry: Any, transport: str) -> None:
    server, _ = load(tmp_path, entry)
    assert server is not None
    assert server.transport == transport


@pytest.mark.req("CONF-1")
def test_type_wins_over_transport_with_a_warning(tmp_path: Path) -> None:
    server, config = load(tmp_path, {"url": URL, "type": "http", "transport": "sse"})
    assert server is not None
    assert server.transport == "http"
    (warning,) = config.warnings
    assert not warning.fatal
    assert warning.server == "s"
    assert "`type`" in warning.message


@pytest.mark.req("CONF-1")
def test_two_spellings_of_one_transport_are_no_difference(tmp_path: Path) -> None:
    _, config = load(tmp_path, {"url": URL, "type": "http", "transport": "streamable-http"})
    assert config.warnings == []


@pytest.mark.req("CONF-1")
@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"type": "stdio", "url": URL}, ["mcpServers.s ", "`command`", "`type`"]),
        ({"tpye": "http"}, ["mcpServers.s.tpye", "'type'", "`command`"]),
        ({"type": "http"}, ["mcpServers.s ", "`url`"]),
        ({"type": "carrier-pigeon", "url": URL}, ["mcpServers.s.type", "stdio, sse, http"]),
        ({"command": ""}, ["mcpServers.s.command", "`command`"]),
        ({"url": "ftp://h"}, ["mcpServers.s.url", "http://"]),
        ({"url": "http://"}, ["mcpServers.s.url", "host"]),
        ({"url": "http://h:99999/"}, ["mcpServers.s.url", "URL"]),
        ({"url": "$NOWHERE"}, ["mcpServers.s.url", "NOWHERE is not set"]),
        ({"command": ["x"]}, ["mcpServers.s.command", "not a list"]),
        ({"command": "x", "args": "y"}, ["mcpServers.s.args", "not text"]),
        ({"command": "x", "args": ["a", 5]}, ["mcpServers.s.args[1]", "quotes"]),
        ({"command": "x", "env": {"A": 1}}, ["mcpServers.s.env.A", "quotes"]),
        ({"command": "x", "env": {"A=B": "1"}}, ["A=B", "name"]),
        ({"command": "x", "env": ["A=1"]}, ["mcpServers.s.env", "object"]),
        ({"command": "x", "enabled": "false"}, ["mcpServers.s.enabled", "true or false"]),
        ({"url": URL, "headers": {"X A": "1"}}, ["X A", "token"]),
        ({"url": URL, "headers": {"A": "1", "a": "2"}}, ["mcpServers.s.headers.a", "twice", "'A'"]),
        ({"url": URL, "headers": {"Host": "evil"}}, ["mcpServers.s.headers.Host", "protocol"]),
        ({"command": "x", "tools": {"t": 5}}, ["mcpServers.s.tools.t", "object"]),
        (None, ["mcpServers.s ", "not null"]),
        ([1], ["mcpServers.s ", "not a list"]),
        ("x", ["mcpServers.s ", "not text"]),
    ],
)
def test_a_broken_entry_costs_itself_only_and_is_named(tmp_path: Path, entry: Any, words: list[str]) -> None:
    server, config = load(tmp_path, entry)
    assert server is None
    for word in words:
        assert word in config.messages()
    assert "line " in config.messages()


@pytest.mark.req("CONF-1")
def test_unknown_keys_are_kept_with_the_nearest_known_name(tmp_path: Path) -> None:
    entry = {"command": "x", "tool_call_timout": 5, "routng": {}, "autoApprove": ["a"], "description": "d"}
    server, config = load(tmp_path, entry)
    assert server is not None
    assert server.extra == {k: v for k, v in entry.items() if k != "command"}
    assert "'tool_call_timeout'" in config.messages()
    assert "'routing'" in config.messages()
    assert "autoApprove" in config.messages()
    assert "description" not in config.messages()


@pytest.mark.req("CONF-1")
def test_files_of_other_clients_work_unchanged(tmp_path: Path) -> None:
    server, config = load(tmp_path, {"command": "x", "disabled": True, "tools": ["*"], "timeout": 60})
    assert server is not None
    assert not server.enabled
    assert all(not fault.fatal for fault in config.warnings)
    both, _ = load(tmp_path, {"command": "x", "disabled": True, "enabled": True})
    assert both is not None
    assert both.enabled


@pytest.mark.req("CONF-8", "TOOL-8")
@pytest.mark.parametrize("key", ["session_init_timeout", "tool_call_timeout"])
@pytest.mark.parametrize(
    "value", ["0", "-1", '"inf"', '"nan"', "1e309", "true", '"5"', "NaN", "[]", "1" + "0" * 400]
)
def test_bad_timeouts(tmp_path: Path, key: str, value: str) -> None:
    config = Extensions(tmp_path)
    config.path.write_text(f'{{"mcpServers": {{"s": {{"command": "x",\n "{key}": {value}}}}}}}')
    assert config.file.current().servers == {}
    (fault,) = config.warnings
    assert fault.where == f"mcpServers.s.{key} (line 2, column 2)"
    assert "positive" in fault.message


@pytest.mark.req("CONF-8", "TOOL-8")
def test_good_timeouts(tmp_path: Path) -> None:
    absent, _ = load(tmp_path, {"command": "x"})
    none, _ = load(tmp_path, {"command": "x", "session_init_timeout": None, "tool_call_timeout": None})
    given, _ = load(tmp_path, {"command": "x", "session_init_timeout": 5, "tool_call_timeout": 0.5})
    assert absent is not None and none is not None and given is not None  # noqa: PT018
    assert (absent.session_init_timeout_seconds, absent.tool_call_timeout_seconds) == (60.0, None)
    assert (none.session_init_timeout_seconds, none.tool_call_timeout_seconds) == (None, None)
    assert (given.session_init_timeout_seconds, given.tool_call_timeout_seconds) == (5.0, 0.5)


@pytest.mark.req("CRED-2", "CRED-9")
@pytest.mark.parametrize("value", ["planted\n", "planted ", "pla\0nted", "plänted", "\r\nX-Admin: planted"])
def test_a_header_that_http_cannot_carry_is_named_and_never_quoted(tmp_path: Path, value: str) -> None:
    server, config = load(tmp_path, {"url": URL, "headers": {"X-Key": "${K}"}}, {"K": value})
    assert server is None
    assert "X-Key" in config.messages()
    assert "environment: K" in config.messages()
    assert "plant" not in config.messages()
    assert "nted" not in config.messages()


@pytest.mark.req("STDIO-6")
def test_launch_signature_moves_with_what_a_session_is_started_with(tmp_path: Path) -> None:
    config = Extensions(tmp_path, {"T": "secret-value"})
    base: dict[str, Any] = {"command": "x", "args": ["a"], "env": {"K": "$T"}, "cwd": "/tmp"}
    remote: dict[str, Any] = {"url": URL, "headers": {"A": "1"}, "user_auth": {"users": {"a": "x"}}}
    changed = [
        base | {"command": "y"},
        base | {"args": ["b"]},
        base | {"env": {"K": "other"}},
        base | {"cwd": "/"},
    ]
    moved = [
        remote | {"url": URL + "2"},
        remote | {"headers": {"A": "2"}},
        remote | {"user_auth": {"users": {"a": "y"}}},
        remote | {"type": "sse"},
    ]
    alike = [base | {"description": "d", "tool_call_timeout": 3, "routing": {"mode": "prefer"}}]
    entries = [base, *changed, *alike, remote, *moved]
    config.write({str(index): entry for index, entry in enumerate(entries)})
    signatures = [server.launch_signature for server in config.file.current().servers.values()]
    assert len(signatures) == len(entries)
    assert signatures[0] == signatures[len(changed) + 1]
    assert len(set(signatures)) == len(entries) - 1
    assert all("secret-value" not in signature for signature in signatures)
    other = Extensions(tmp_path, {"T": "secret-value"})
    assert other.file.current().servers["0"].launch_signature != signatures[0]  # keyed, so not guessable


@pytest.mark.req("CRED-9")
def test_no_secret_in_a_repr(tmp_path: Path) -> None:
    entry = {"command": "planted", "args": ["planted"], "env": {"K": "planted"}, "extra": "planted"}
    server, config = load(tmp_path, entry)
    assert "planted" not in repr(server)
    assert "planted" not in repr(config.file.current())


@pytest.mark.req("PLUG-9")
@pytest.mark.parametrize(
    ("value", "paths"),
    [("m:b", ("m:b",)), (["m:b", " n:c "], ("m:b", "n:c")), (None, ()), ([], ())],
)
def test_interceptors(tmp_path: Path, value: Any, paths: tuple[str, ...]) -> None:
    config = Extensions(tmp_path)
    config.write({}, mcpInterceptors=value)
    assert config.file.current().interceptors == paths


@pytest.mark.req("PLUG-9")
@pytest.mark.parametrize("value", [5, {"a": 1}, ["m:b", 5], [""]])
def test_interceptors_in_a_wrong_form_are_a_fatal_fault_of_the_file(tmp_path: Path, value: Any) -> None:
    config = Extensions(tmp_path)
    config.write({"s": {"command": "x"}}, mcpInterceptors=value)
    assert set(config.file.current().servers) == {"s"}
    (fault,) = config.warnings
    assert fault.fatal
    assert fault.server is None
    assert fault.where.startswith("mcpInterceptors")
