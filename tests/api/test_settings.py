"""``[api]``, ``MOORAGE_API_*`` and the admin key (CONF-6, API-2)."""

from pathlib import Path
from typing import Any

import pytest
from support.memory_store import MemoryKeys

from moorage.contract import ConfigError
from moorage.settings import Settings
from moorage_api.auth.first_key import first_admin_key
from moorage_api.auth.keys import check_name, check_roles, key_hash
from moorage_api.settings import ApiSettings, api_settings

pytestmark = pytest.mark.req("CONF-6", "API-2")


def settings(**api: Any) -> Settings:
    return Settings(home=Path("h"), database_url="memory:", other={"api": api}, source=Path("moorage.toml"))


def test_defaults_are_loopback_with_authentication() -> None:
    assert api_settings(settings(), {}) == ApiSettings()
    assert (ApiSettings().host, ApiSettings().authentication) == ("127.0.0.1", True)


def test_the_environment_wins_over_the_file() -> None:
    got = api_settings(
        settings(port=9000, host="127.0.0.2", shutdown_grace_seconds=1),
        {"MOORAGE_API_PORT": "9001", "MOORAGE_API_AUTHENTICATION": "false"},
    )
    assert (got.port, got.host, got.authentication) == (9001, "127.0.0.2", False)
    assert got.shutdown_grace_seconds == 1.0


@pytest.mark.parametrize(
    ("table", "environment", "named"),
    [
        ({"prot": 1}, {}, "moorage.toml: api.prot"),
        ({"port": "9000"}, {}, "moorage.toml: api.port"),
        ({"port": True}, {}, "moorage.toml: api.port"),
        ({"port": 70_000}, {}, "moorage.toml: api.port"),
        ({"authentication": "no"}, {}, "moorage.toml: api.authentication"),
        ({"heartbeat_seconds": 0}, {}, "moorage.toml: api.heartbeat_seconds"),
        ({"heartbeat_seconds": float("nan")}, {}, "moorage.toml: api.heartbeat_seconds"),
        ({"admin_key": "x" * 20}, {}, "moorage.toml: api.admin_key"),
        ({}, {"MOORAGE_API_PORT": "x"}, "MOORAGE_API_PORT"),
        ({}, {"MOORAGE_API_AUTHENTICATION": "maybe"}, "MOORAGE_API_AUTHENTICATION"),
        ({}, {"MOORAGE_ADMIN_KEY": "short-secret"}, "MOORAGE_ADMIN_KEY"),
    ],
)
def test_a_bad_setting_is_named(table: dict[str, Any], environment: dict[str, str], named: str) -> None:
    with pytest.raises(ConfigError, match=named) as caught:
        api_settings(settings(**table), environment)
    assert "short-secret" not in str(caught.value)


def test_the_admin_key_shows_in_no_repr() -> None:
    got = api_settings(settings(), {"MOORAGE_ADMIN_KEY": "an-admin-key-for-tests"})
    assert got.admin_key == "an-admin-key-for-tests"
    assert "an-admin-key" not in repr(got)


async def test_a_key_is_generated_where_none_was_ever_made_and_only_then() -> None:
    keys = MemoryKeys()
    key = await first_admin_key(keys)
    assert key is not None
    assert (record := await keys.find(key_hash(key))) is not None
    assert "admin" in record.roles
    assert await first_admin_key(keys) is None
    await keys.revoke("admin")
    assert await first_admin_key(keys) is None


@pytest.mark.parametrize("name", ["", " ", "a b", "-x", "x" * 129, "a\n", "ä"])
def test_names_that_would_confuse_are_refused(name: str) -> None:
    with pytest.raises(ConfigError):
        check_name(name, "a user id")


def test_unknown_roles_are_refused() -> None:
    with pytest.raises(ConfigError, match="root"):
        check_roles(["user", "root"])
