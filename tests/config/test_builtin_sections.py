"""The built-in plugins' own sections in the pipeline (PLUG-5, CRED-4, CRED-5, ADMIN-1, ADMIN-2)."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.extensions import Extensions

from moorage.config import ConfigEditor
from moorage.contract import ConfigSection
from moorage_plugins.headers_from_context.plugin import moorage_config_sections as headers_from_context
from moorage_plugins.routing.plugin import moorage_config_sections as routing
from moorage_plugins.user_auth.plugin import moorage_config_sections as user_auth

SERVER: dict[str, Any] = {
    "url": "https://h/mcp",
    "headers": {"Authorization": "planted-header"},
    "user_auth": {
        "header": "X-User",
        "users": {"alice": "planted-alice", "bob": "$BOB"},
        "api_key": "planted-extra",
    },
    "headers_from_context": {"headers": {"X-Tenant-Token": "tenant_token"}, "token": "planted-token"},
    "routing": {"mode": "prefer", "keywords": ["sql"]},
    "tools": {"raw.name": {"routing": {"priority": 80}}},
}


@pytest.fixture
def config(tmp_path: Path) -> Extensions:
    sections: list[ConfigSection] = [*headers_from_context(), *routing(), *user_auth()]
    config = Extensions(tmp_path, {"BOB": "bobs"}, sections=sections)
    config.write({"s": SERVER})
    return config


@pytest.mark.req("PLUG-5", "ADMIN-1", "ADMIN-2", "CRED-5")
async def test_round_trip(config: Extensions) -> None:
    editor = ConfigEditor(config.file)
    body = json.loads(json.dumps((await editor.view()).config))
    assert "planted" not in json.dumps(body)
    shown = body["mcpServers"]["s"]
    assert shown["user_auth"]["users"] == {"alice": "***", "bob": "$BOB"}
    assert shown["headers_from_context"] == {"headers": {"X-Tenant-Token": "tenant_token"}, "token": "***"}
    assert not (await editor.replace(body)).written
    shown["headers_from_context"]["headers"] = {"X-Other": "other_key"}
    await editor.replace(body)
    block = config.raw()["mcpServers"]["s"]["headers_from_context"]
    assert block == {"headers": {"X-Other": "other_key"}, "token": "planted-token"}


@pytest.mark.req("CRED-5", "PLUG-5")
def test_faults_name_their_place(config: Extensions) -> None:
    config.write(
        {
            "twice": {"url": "http://h", "headers_from_context": {"headers": {"A": "k", "a": "k"}}},
            "mode": {"url": "http://h", "user_auth": {"on_mising": "deny", "on_missing": "planted"}},
        }
    )
    assert set(config.file.current().refused) == {"twice", "mode"}
    assert "mcpServers.twice.headers_from_context" in config.messages()
    assert "mcpServers.mode.user_auth.on_missing" in config.messages()
    assert "did you mean 'on_missing'?" in config.messages()
    assert "planted" not in config.messages()
