"""``[api]`` of moorage.toml and ``MOORAGE_API_*`` (CONF-6)."""

import os
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from ipaddress import ip_address
from typing import Any

from moorage.contract.errors import ConfigError
from moorage.settings import Settings

DEFAULT_PORT = 8930


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiSettings:
    """The HTTP service. ``admin_key`` is `MOORAGE_ADMIN_KEY`, which no file can set."""

    host: str = "127.0.0.1"
    port: int = field(default=DEFAULT_PORT, metadata={"range": (0, 65_535)})
    authentication: bool = True
    shutdown_grace_seconds: float = field(default=5.0, metadata={"range": (0, 300)})
    """How long requests under way may take to finish when the gateway stops."""
    heartbeat_seconds: float = field(default=15.0, metadata={"range": (0.05, 300)})
    """How often a silent stream sends a sign of life."""
    admin_key: str | None = field(default=None, repr=False)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach what listens there."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def check_exposure(settings: ApiSettings) -> None:
    """Binding beyond loopback needs authentication; raises `ConfigError` (API-2)."""
    if not settings.authentication and not is_loopback(settings.host):
        raise ConfigError(
            f"refusing to listen on {settings.host!r} without authentication: switch authentication on, "
            "or listen on 127.0.0.1",
            where="api.authentication",
        )


def admin_key(environment: Mapping[str, str] | None = None) -> str | None:
    """`MOORAGE_ADMIN_KEY`; raises `ConfigError` for one that can be guessed."""
    key = (os.environ if environment is None else environment).get("MOORAGE_ADMIN_KEY", "").strip()
    if key and len(key) < 16:
        raise ConfigError("the key must have at least 16 characters", where="MOORAGE_ADMIN_KEY")
    return key or None


def api_settings(settings: Settings, environment: Mapping[str, str] | None = None) -> ApiSettings:
    """The API's own settings, out of the table that the core left unread and the environment.

    Raises `ConfigError` for an unknown key or a value out of range, naming it.
    """
    environment = os.environ if environment is None else environment
    table = settings.other.get("api", {})
    file = str(settings.source or "moorage.toml")
    known = {item.name: item for item in fields(ApiSettings) if item.name != "admin_key"}
    for name in table:
        if name not in known:
            raise ConfigError(
                f"there is no such setting; there are {', '.join(known)}", where=f"{file}: api.{name}"
            )
    values: dict[str, Any] = {}
    for name, item in known.items():
        variable = f"MOORAGE_API_{name.upper()}"
        if variable in environment:
            values[name] = _checked(item, _parsed(item, environment[variable], variable), variable)
        elif name in table:
            values[name] = _checked(item, table[name], f"{file}: api.{name}")
    return ApiSettings(**values, admin_key=admin_key(environment))


def _parsed(item: Field[Any], text: str, where: str) -> Any:
    kind: type[Any] = type(item.default)
    try:
        return _FLAGS[text.lower()] if kind is bool else kind(text)
    except (KeyError, ValueError):
        raise ConfigError(f"expects {_KINDS[kind]}", where=where) from None


_FLAGS = {"true": True, "1": True, "false": False, "0": False}
_KINDS: Mapping[type[Any], str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
}


def _checked(item: Field[Any], value: Any, where: str) -> Any:
    kind: type[Any] = type(item.default)
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind:
        raise ConfigError(f"expects {_KINDS[kind]}", where=where)
    low, high = item.metadata.get("range", (None, None))
    if low is not None and not low <= value <= high:
        raise ConfigError(f"must be between {low} and {high}", where=where)
    return value
