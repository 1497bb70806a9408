"""``/api/mcp/config``, on a real gateway with its real launch policy (ADMIN, LAUNCH-1)."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from moorage.testing.process import GatewayProcess

CONFIG: dict[str, Any] = {
    "mcpServers": {
        "local": {
            "type": "stdio",
            "command": "npx",
            "args": ["-y", "srv-of-ours", "--api-key", "$MCP_TOKEN"],
            "env": {"K": "$K", "L": "planted-literal-1"},
            "enabled": False,
        },
        "remote": {
            "type": "http",
            "url": "https://u:${PW}@h.example/mcp?key=${Q}",
            "headers": {"Authorization": "Bearer ${T}", "X-Own": "planted-literal-2"},
            "oauth": {
                "token_url": "https://auth.example/token",
                "client_id": "me",
                "client_secret": "planted-literal-3",
            },
            "user_auth": {"header": "X-User", "users": {"alice": "planted-literal-4", "bob": "$B"}},
            "unknown": {"kept": True, "api_key": "planted-literal-5"},
            "enabled": False,
        },
        "own": {"command": "/opt/own/tool", "args": ["-c", "anything"], "enabled": False},
    },
    "mcpInterceptors": [],
    "custom": {"kept": 1},
}
VALUES = {name: f"resolved-{name.lower()}-value" for name in ("MCP_TOKEN", "K", "PW", "Q", "T")}
URL = "/api/mcp/config"


class Config:
    """One gateway's config, as an administrator sees and as the file has it."""

    def __init__(self, gateway: GatewayProcess, http: httpx.Client) -> None:
        self.gateway, self.http = gateway, http

    @property
    def file(self) -> Any:
        return json.loads(self.gateway.config_path.read_text())

    def get(self) -> Any:
        return self.http.get(URL).raise_for_status().json()

    def put(self, body: Any, **options: Any) -> httpx.Response:
        return self.http.put(URL, json=body, **options)

    def patch(self, server: str, enabled: bool, **options: Any) -> httpx.Response:
        return self.http.patch(URL, json={"server": server, "enabled": enabled}, **options)

    def reset(self) -> None:
        self.gateway.config_path.write_text(json.dumps(CONFIG, indent=2))


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Config]:
    home = tmp_path_factory.mktemp("config") / "home"
    with (
        GatewayProcess(home, config=CONFIG, environment=VALUES) as gateway,
        httpx.Client(base_url=gateway.url, headers=gateway.headers, timeout=60) as http,
    ):
        yield Config(gateway, http)


@pytest.fixture
def config(running: Config) -> Config:
    running.reset()
    return running


@pytest.mark.req("ADMIN-1", "ADMIN-2", "CONF-3")
def test_get_shows_no_secret_and_put_of_it_changes_nothing(config: Config) -> None:
    """C13, C14 (1)."""
    before = config.gateway.config_path.read_bytes()
    body = config.get()
    text = json.dumps(body)
    assert "planted-literal" not in text
    assert "resolved-" not in text
    for shown in ("$MCP_TOKEN", "${PW}", "${Q}", "Bearer ${T}", "$B", "***"):
        assert shown in text
    assert body["mcpServers"]["remote"]["oauth"]["client_secret"] is None
    assert set(body) == {"mcpServers"}
    answer = config.put(body)
    assert answer.status_code == 200, answer.text
    assert answer.json() == {
        "written": False, "added": [], "removed": [], "changed": {}, "warnings": answer.json()["warnings"],
        "tasks_after_restart": [],
    }  # fmt: skip
    assert config.gateway.config_path.read_bytes() == before
    reordered = {name: dict(reversed(entry.items())) for name, entry in reversed(body["mcpServers"].items())}
    assert config.put({"mcpServers": reordered}).json()["written"] is False


@pytest.mark.req("ADMIN-2")
def test_a_mask_stands_for_the_stored_secret_of_that_place_alone(config: Config) -> None:
    """C14 (2) to (9)."""
    body = config.get()
    remote = body["mcpServers"]["remote"]
    changed = copy.deepcopy(body)
    changed["mcpServers"]["remote"]["headers"]["X-Own"] = "fresh"
    assert config.put(changed).status_code == 200
    stored = config.file["mcpServers"]["remote"]
    assert stored["headers"] == {"Authorization": "Bearer ${T}", "X-Own": "fresh"}
    assert stored["oauth"]["client_secret"] == "planted-literal-3"
    assert stored["user_auth"]["users"]["alice"] == "planted-literal-4"

    def refused(change: Any, key: str) -> None:
        config.reset()
        wrong = copy.deepcopy(body)
        change(wrong["mcpServers"])
        kept = config.gateway.config_path.read_bytes()
        answer = config.put(wrong)
        assert answer.status_code == 400, answer.text
        assert any(key in fault["path"] for fault in answer.json()["errors"]), answer.text
        assert config.gateway.config_path.read_bytes() == kept
        assert "planted" not in answer.text

    refused(lambda servers: servers["remote"]["headers"].update({"X-New": "***"}), "X-New")
    refused(lambda servers: servers.update(copy=copy.deepcopy(servers["local"])), "copy")
    refused(lambda servers: servers.update(renamed=servers.pop("remote")), "renamed")
    refused(lambda servers: servers["remote"]["headers"].update({"X-Own": None, "X-B": "***"}), "X-B")
    refused(lambda servers: servers["remote"].update(url="https://evil.example/mcp"), "remote")
    refused(lambda servers: servers["remote"]["oauth"].update(token_url="https://evil.example/t"), "oauth")
    refused(lambda servers: servers["local"].update(args=["-y", "another-srv"]), "local")
    refused(lambda servers: servers["local"]["env"].update(NEW="***"), "NEW")

    def to_stdio(servers: Any) -> None:
        servers["remote"].update(type="stdio", command="npx", args=["-y", "srv-of-ours"], url=None)

    refused(to_stdio, "remote")
    assert remote["oauth"]["client_secret"] is None
    cleared = copy.deepcopy(body)
    cleared["mcpServers"]["remote"]["oauth"]["client_secret"] = ""
    config.reset()
    assert config.put(cleared).status_code == 200
    assert config.file["mcpServers"]["remote"]["oauth"].get("client_secret") in (None, "")


@pytest.mark.req("ADMIN-7", "ADMIN-2")
def test_nothing_beside_the_servers_can_be_written(config: Config) -> None:
    body = config.get()
    extras: list[dict[str, Any]] = [{"mcpInterceptors": ["evil:build"]}, {"custom": {}}, {"plugins": {}}]
    for extra in extras:
        answer = config.put({**body, **extra})
        assert answer.status_code == 400
        assert answer.json()["errors"][0]["path"] in extra
    body["mcpServers"]["fresh"] = {"url": "https://fresh.example/mcp", "enabled": False}
    assert config.put(body).json()["added"] == ["fresh"]
    assert {key: config.file[key] for key in ("mcpInterceptors", "custom")} == {
        "mcpInterceptors": [],
        "custom": {"kept": 1},
    }


LAUNCHES = [
    {"command": "npx", "args": ["-c", "touch {mark}"]},
    {"command": "npx", "args": ["--call=touch {mark}"]},
    {"command": "npx", "args": ["-yc", "touch {mark}"]},
    {"command": "uvx", "args": ["--python={mark}", "srv"]},
    {"command": "npx", "args": ["-y"], "env": {"Npm_Config_Call": "touch {mark}"}},
    {"command": "npx", "args": ["-y", "srv-of-ours"], "env": {"PATH": "{mark}"}},
    {"command": "/bin/sh", "args": ["-c", "touch {mark}"]},
    {"command": "npx ", "args": ["-y", "srv-of-ours"]},
    {"command": "./npx", "args": ["-y", "srv-of-ours"]},
    {"type": "http", "url": "http://169.254.169.254/mcp"},
    {"type": "http", "url": "https://user:pass-word@h.example/mcp"},
]


@pytest.mark.req("LAUNCH-1", "LAUNCH-2", "LAUNCH-3", "LAUNCH-6", "LAUNCH-8")
@pytest.mark.parametrize("number", range(len(LAUNCHES)))
def test_what_may_not_start_is_refused_before_anything_is_written_or_started(
    config: Config, tmp_path: Path, number: int
) -> None:
    """C01, C02, C05: the file stays, no process is started, also not by PATCH."""
    mark = tmp_path / "mark"
    text = json.dumps(LAUNCHES[number]).replace("{mark}", str(mark))
    entry = json.loads(text)
    body = config.get()
    body["mcpServers"]["bad"] = {**entry, "enabled": True}
    kept = config.gateway.config_path.read_bytes()
    answer = config.put(body)
    assert answer.status_code == 422, answer.text
    assert "'bad'" in answer.json()["detail"]
    assert str(mark) not in answer.text
    assert "pass-word" not in answer.text
    assert config.gateway.config_path.read_bytes() == kept
    written = copy.deepcopy(CONFIG)
    written["mcpServers"]["bad"] = {**entry, "enabled": False}
    config.gateway.config_path.write_text(json.dumps(written))
    kept = config.gateway.config_path.read_bytes()
    assert config.patch("bad", True).status_code == 422
    assert config.gateway.config_path.read_bytes() == kept
    assert config.patch("bad", False).status_code == 200
    assert not mark.exists()


@pytest.mark.req("LAUNCH-1", "ADMIN-3")
def test_what_the_operator_wrote_is_judged_only_when_it_would_start_anew(config: Config) -> None:
    body = config.get()
    body["mcpServers"]["own"]["note"] = "kept"
    assert config.put(body).status_code == 200
    assert config.file["mcpServers"]["own"]["note"] == "kept"
    assert config.patch("own", True).status_code == 422
    body["mcpServers"]["own"]["args"] = ["-c", "something else"]
    assert config.put(body).status_code == 422


@pytest.mark.req("ADMIN-3")
def test_patch_changes_one_switch_and_nothing_else(config: Config) -> None:
    fixed = copy.deepcopy(CONFIG)
    fixed["mcpServers"]["broken"] = {"command": 7, "enabled": True}
    config.gateway.config_path.write_text(json.dumps(fixed, indent=4))
    assert config.patch("nobody", True).status_code == 404
    answer = config.patch("broken", False)
    assert answer.status_code == 200, answer.text
    fixed["mcpServers"]["broken"]["enabled"] = False
    assert config.file == fixed
    assert config.patch("broken", True).status_code == 400
    assert config.patch("local", True).json()["changed"] == {"local": ["enabled"]}
    both: dict[str, Any] = {"server": "local", "enabled": True}
    for wrong in ({}, {"server": "local"}, both | {"enabled": "no"}, both | {"server": 1}, both | {"x": 1}):
        assert config.http.patch(URL, json=wrong).status_code == 422


@pytest.mark.req("ADMIN-6")
def test_etags_tell_changes_apart_and_a_dry_run_writes_nothing(config: Config) -> None:
    seen = config.http.get(URL)
    etag, body = seen.headers["ETag"], seen.json()
    body["mcpServers"]["local"]["args"] = ["-y", "srv-of-ours", "--api-key", "$MCP_TOKEN", "--verbose"]
    kept = config.gateway.config_path.read_bytes()
    dry = config.put(body, params={"dry_run": "true"}, headers={"If-Match": etag})
    assert dry.json()["changed"] == {"local": ["args"]}
    assert (dry.json()["written"], dry.headers["ETag"]) == (False, etag)
    assert config.gateway.config_path.read_bytes() == kept
    written = config.put(body, headers={"If-Match": etag})
    assert (written.status_code, written.json()["written"]) == (200, True)
    assert written.headers["ETag"] == config.http.get(URL).headers["ETag"] != etag
    stale = config.put(body, headers={"If-Match": etag})
    assert stale.status_code == 412
    assert config.patch("local", True, headers={"If-Match": etag}).status_code == 412
    several = {"If-Match": f'"x", {written.headers["ETag"]}'}
    assert config.patch("local", False, headers=several).status_code == 200


@pytest.mark.req("ADMIN-1", "API-2")
def test_only_administrators_get_anywhere(config: Config, tmp_path: Path) -> None:
    """C07: without a key, and with a user's."""
    import subprocess
    import sys

    made = subprocess.run(
        [sys.executable, "-m", "moorage", "keys", "create", "u", "--user", "u", "--role", "user", "--json"],
        env={"MOORAGE_HOME": str(config.gateway.home), "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    mark = tmp_path / "mark"
    bad = {"mcpServers": {"bad": {"command": "/bin/sh", "args": ["-c", f"touch {mark}"], "enabled": True}}}
    kept = config.gateway.config_path.read_bytes()
    for headers, status in (({}, 401), ({"X-Api-Key": json.loads(made.stdout)["key"]}, 403)):
        with httpx.Client(base_url=config.gateway.url, headers=headers) as http:
            assert http.get(URL).status_code == status
            assert http.put(URL, json=bad).status_code == status
            assert http.patch(URL, json={"server": "local", "enabled": True}).status_code == status
            assert http.post("/api/mcp/cache/reset").status_code == status
            assert http.get("/api/mcp/servers?probe=true").status_code == status
    assert config.gateway.config_path.read_bytes() == kept
    assert not mark.exists()


@pytest.mark.req("CONF-8", "CONF-7")
def test_timeouts_are_positive_finite_numbers_on_both_routes(config: Config) -> None:
    """C22: and a bad value of an older release can be seen, switched off and repaired."""
    body = config.get()
    for key in ("session_init_timeout", "tool_call_timeout"):
        for value in ("0", "-1", '"inf"', '"nan"', "1e309", "true", '"5"'):
            wrong = copy.deepcopy(body)
            wrong["mcpServers"]["remote"][key] = "PLACE"
            sent = json.dumps(wrong).replace('"PLACE"', value)
            answer = config.http.put(URL, content=sent, headers={"Content-Type": "application/json"})
            assert answer.status_code in (400, 422), (key, value, answer.text)
        for good in (None, 30, 0.5):
            wrong = copy.deepcopy(body)
            wrong["mcpServers"]["remote"][key] = good
            assert config.put(wrong).status_code == 200
    old = copy.deepcopy(CONFIG)
    old["mcpServers"]["remote"].update(session_init_timeout=0, enabled=True)
    config.gateway.config_path.write_text(json.dumps(old))
    shown = config.get()
    assert shown["mcpServers"]["remote"]["session_init_timeout"] == 0
    assert config.patch("remote", False).status_code == 200
    shown = config.get()
    shown["mcpServers"]["remote"]["session_init_timeout"] = 60
    assert config.put(shown).status_code == 200
    assert config.file["mcpServers"]["remote"]["session_init_timeout"] == 60


@pytest.mark.req("CONF-7", "ADMIN-2")
def test_a_file_that_cannot_be_read_is_never_overwritten(config: Config) -> None:
    body = config.get()
    for broken in ("{", "[]", "null", ""):
        config.gateway.config_path.write_text(broken)
        assert config.http.get(URL).status_code == 409
        assert config.put(body).status_code == 409
        assert config.gateway.config_path.read_text() == broken


@pytest.mark.req("API-1", "ADMIN-1")
def test_no_answer_repeats_what_was_sent(config: Config) -> None:
    """C38."""
    secret = "planted-in-the-body"
    entry: dict[str, Any] = {"url": "https://x.example/", "headers": {"Authorization": [secret]}}
    for sent in (
        json.dumps({"mcpServers": {"s": entry}}),
        json.dumps({"mcpServers": {"s": {"type": "http", "headers": {"Authorization": secret}}}}),
        json.dumps({"mcpServers": [secret]}),
        json.dumps([secret]),
        '{"mcpServers": {"s": {"url": "' + secret,
        json.dumps({"mcpServers": {"s": {"command": "npx", "args": secret}}}),
        json.dumps({"mcpServers": {"s": {"url": "https://x.example/", "oauth": secret}}}),
    ):
        answer = config.http.put(URL, content=sent, headers={"Content-Type": "application/json"})
        assert answer.status_code in (400, 422), answer.text
        assert secret not in answer.text
    assert secret not in config.gateway.log()
