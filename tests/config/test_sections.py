"""Sections that plugins own (PLUG-4, PLUG-5, PLUG-7)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, field_validator
from support.extensions import SECTIONS, Extensions, OAuthBlock, RoutingBlock, ToolsetBlock

from moorage.contract import ConfigError, ConfigSection

URL = "http://h/mcp"


class Inner(BaseModel):
    model_config = ConfigDict(extra="allow")
    depth: int = 0


class Block(BaseModel):
    model_config = ConfigDict(extra="ignore", populate_by_name=True)
    label: str = Field("", alias="displayName")
    inner: Inner | None = None
    many: list[Inner] = []
    named: dict[str, Inner] = {}
    secret: str = ""

    @field_validator("secret")
    @classmethod
    def _quotes_what_it_got(cls, value: str) -> str:
        if value.startswith("bad"):
            raise ValueError(f"{value} is not good")
        return value


def with_section(tmp_path: Path, **options: Any) -> Extensions:
    section = ConfigSection("custom", lambda: Block, secret_paths=("secret",), **options)
    return Extensions(tmp_path, {"PLANTED": "bad-planted-secret"}, sections=[section, *SECTIONS])


def load(config: Extensions, entry: dict[str, Any]) -> Any:
    config.write({"s": {"url": URL, **entry}})
    return config.file.current()


@pytest.mark.req("PLUG-5")
def test_blocks_arrive_as_the_plugins_models(tmp_path: Path) -> None:
    config = Extensions(tmp_path, {"SECRET": "resolved"})
    snapshot = load(
        config,
        {
            "oauth": {"token_url": "http://t", "client_secret": "${SECRET}"},
            "task_toolsets": [{"name": "n", "submit_tool": "a", "status_tool": "b"}],
            "routing": {"mode": "prefer"},
            "tools": {"raw": {"routing": {"priority": 3}}},
        },
    )
    server = snapshot.servers["s"]
    assert server.sections["oauth"] == OAuthBlock(token_url="http://t", client_secret="resolved")
    assert server.sections["task_toolsets"] == (ToolsetBlock(name="n", submit_tool="a", status_tool="b"),)
    assert server.sections["routing"] == RoutingBlock(mode="prefer")
    assert server.tool_sections == {"raw": {"routing": RoutingBlock(priority=3)}}
    assert server.extra == {}
    assert config.warnings == []


@pytest.mark.req("PLUG-5", "CONF-7")
@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"oauth": {}}, ["mcpServers.s.oauth.token_url", "required"]),
        ({"oauth": {"token_url": 5}}, ["mcpServers.s.oauth.token_url (line"]),
        ({"oauth": [1]}, ["mcpServers.s.oauth (", "object"]),
        ({"oauth": "x"}, ["mcpServers.s.oauth (", "object"]),
        ({"task_toolsets": {}}, ["mcpServers.s.task_toolsets (", "list"]),
        ({"task_toolsets": [{"name": "n"}]}, ["mcpServers.s.task_toolsets[0].submit_tool"]),
        ({"task_toolsets": [5]}, ["mcpServers.s.task_toolsets[0]"]),
        ({"tools": {"raw": {"routing": {"mode": "x"}}}}, ["mcpServers.s.tools.raw.routing.mode"]),
        ({"user_auth": {"users": {"alice": 5}}}, ["mcpServers.s.user_auth.users.alice"]),
    ],
)
def test_invalid_blocks_refuse_the_server_and_name_the_place(
    tmp_path: Path, entry: dict[str, Any], words: list[str]
) -> None:
    config = Extensions(tmp_path)
    snapshot = load(config, entry)
    assert set(snapshot.refused) == {"s"}
    for word in words:
        assert word in config.messages()


@pytest.mark.req("PLUG-5")
def test_unknown_keys_inside_a_block_are_warned_about_at_every_depth(tmp_path: Path) -> None:
    config = with_section(tmp_path)
    block = {
        "displayname": "x",
        "label": "populate_by_name",
        "inner": {"dept": 1},
        "many": [{"depth": 1}, {"depht": 2}],
        "named": {"free": {"depth_": 3}},
    }
    snapshot = load(config, {"custom": block})
    assert set(snapshot.servers) == {"s"}
    places = {fault.where.partition(" ")[0]: fault.message for fault in config.warnings}
    assert set(places) == {
        f"mcpServers.s.custom.{path}"
        for path in ("displayname", "inner.dept", "many[1].depht", "named.free.depth_")
    }
    assert "'displayName'" in places["mcpServers.s.custom.displayname"]
    assert "'depth'" in places["mcpServers.s.custom.inner.dept"]


@pytest.mark.req("CRED-6")
def test_http_only_blocks_are_skipped_on_stdio(tmp_path: Path) -> None:
    config = Extensions(tmp_path)
    config.write({"s": {"command": "x", "oauth": {"broken": True}, "routing": {}}})
    server = config.file.current().servers["s"]
    assert set(server.sections) == {"routing"}
    assert "mcpServers.s.oauth" in config.messages()
    assert "stdio" in config.messages()


@pytest.mark.req("PLUG-4")
def test_a_block_whose_plugin_is_missing_refuses_the_server_and_says_what_to_install(tmp_path: Path) -> None:
    known = {"vault": "moorage-vault"}
    config = Extensions(
        tmp_path,
        missing_distribution=known.get,
        remembered_sections={"old": "some-dist", "forgotten": None},
    )
    config.write(
        {
            "v": {"command": "x", "vault": {}},
            "o": {"command": "x", "old": {}},
            "f": {"command": "x", "forgotten": {}},
            "t": {"command": "x", "tools": {"raw": {"vault": {}}}},
            "n": {"command": "x", "vault": None},
            "u": {"command": "x", "whatever": {}},
        }
    )
    snapshot = config.file.current()
    assert set(snapshot.servers) == {"n", "u"}
    assert "moorage install moorage-vault" in snapshot.refused["v"]
    assert "moorage install moorage-vault" in snapshot.refused["t"]
    assert "some-dist" in snapshot.refused["o"]
    assert "not loaded" in snapshot.refused["f"]
    assert snapshot.servers["u"].extra == {"whatever": {}}
    assert "mcpServers.u.whatever" in config.messages()


@pytest.mark.req("PLUG-5", "CRED-9")
@pytest.mark.parametrize("value", ["bad-planted-secret", "$PLANTED", "${PLANTED}"])
def test_a_message_of_a_model_that_quotes_a_secret_is_cleaned(tmp_path: Path, value: str) -> None:
    config = with_section(tmp_path)
    load(config, {"custom": {"secret": value}})
    assert "mcpServers.s.custom.secret" in config.messages()
    assert "is not good" in config.messages()
    assert "planted" not in config.messages()


@pytest.mark.req("PLUG-5", "CRED-9")
def test_a_check_warns_or_refuses_and_its_words_are_cleaned(tmp_path: Path) -> None:
    def check(server: str, block: Any, entry: Mapping[str, Any]) -> tuple[str, ...]:
        assert isinstance(block, Block)
        assert entry["custom"]["label"] == block.label
        if block.label == "refuse":
            raise ConfigError(f"{server} has {entry['headers']}")
        return (f"{server} has {entry['headers']}",)

    config = with_section(tmp_path, check=check)
    headers = {"headers": {"X": "planted-secret"}}
    assert set(load(config, {"custom": {"label": "warn"}, **headers}).servers) == {"s"}
    assert "s has {'X': '***'}" in config.messages()
    refused = with_section(tmp_path, check=check)
    assert set(load(refused, {"custom": {"label": "refuse"}, **headers}).refused) == {"s"}
    assert "planted" not in config.messages() + refused.messages()


@pytest.mark.req("PLUG-7")
@pytest.mark.parametrize("error", [RuntimeError("planted"), SystemExit(3), ImportError("planted")])
def test_a_section_whose_code_fails_refuses_only_its_servers(tmp_path: Path, error: BaseException) -> None:
    def load_model() -> type[BaseModel]:
        raise error

    def check(server: str, block: Any, entry: Mapping[str, Any]) -> tuple[str, ...]:
        raise RuntimeError("planted")

    sections = [
        ConfigSection("failing", load_model),
        ConfigSection("checked", lambda: Block, check=check),
    ]
    config = Extensions(tmp_path, sections=sections)
    config.write(
        {"a": {"command": "x", "failing": {}}, "b": {"command": "x", "checked": {}}, "c": {"command": "x"}}
    )
    snapshot = config.file.current()
    assert set(snapshot.servers) == {"c"}
    assert "'failing'" in snapshot.refused["a"]
    assert "'checked'" in snapshot.refused["b"]
    assert "planted" not in config.messages()


@pytest.mark.req("PLUG-8")
def test_pydantic_is_not_imported_by_reading_a_file_without_sections(tmp_path: Path) -> None:
    import subprocess
    import sys

    (tmp_path / "extensions_config.json").write_text('{"mcpServers": {"s": {"command": "x"}}}')
    code = (
        "import sys, pathlib, moorage.config as c;"
        "f = c.ExtensionsFile(explicit=None, env={}, cwd=pathlib.Path.cwd());"
        "assert set(f.current().servers) == {'s'};"
        "sys.exit('pydantic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False).returncode == 0
