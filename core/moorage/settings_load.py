"""Reading ``moorage.toml`` and ``MOORAGE_*`` (CONF-6)."""

import dataclasses
import math
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from moorage.contract.errors import ConfigError
from moorage.settings import AssistantSettings, LimitSettings, PluginSettings, Settings, TaskSettings

T = TypeVar("T")
_TABLES: dict[str, type[Any]] = {
    "tasks": TaskSettings,
    "assistants": AssistantSettings,
    "limits": LimitSettings,
}


def load_settings(*, env: Mapping[str, str], cwd: Path) -> Settings:
    """The settings in force; raises `ConfigError` that names file or variable, and key.

    The file is ``MOORAGE_CONFIG``, else ``moorage.toml`` in ``cwd``. Variables win over the file.
    """
    explicit = env.get("MOORAGE_CONFIG")
    path = Path(explicit) if explicit else cwd / "moorage.toml"
    table = _read(path, required=bool(explicit))
    home = Path(env.get("MOORAGE_HOME") or table.pop("home", ".moorage"))
    home = home if home.is_absolute() else cwd / home
    url = env.get("MOORAGE_DATABASE_URL") or table.pop("database_url", None)
    made = {name: _table(kind, name, table.pop(name, {}), env) for name, kind in _TABLES.items()}
    extensions = env.get("MOORAGE_EXTENSIONS_CONFIG_PATH")
    return Settings(
        home=home,
        database_url=url or f"sqlite:///{home / 'moorage.sqlite'}",
        extensions_config=Path(extensions) if extensions else None,
        plugins=_plugins(table.pop("plugins", {}), env),
        other={name: value for name, value in table.items() if isinstance(value, dict)},
        source=path if path.exists() else None,
        **made,
    )


def _read(path: Path, *, required: bool) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except FileNotFoundError:
        if required:
            raise ConfigError("there is no such file", where=str(path)) from None
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"cannot be read: {error}", where=str(path)) from None


def _plugins(table: Mapping[str, Any], env: Mapping[str, str]) -> PluginSettings:
    blocked = env.get("MOORAGE_BLOCK_PLUGINS")
    names = blocked.split(",") if blocked else table.get("block", ())
    strict = env.get("MOORAGE_PLUGINS_STRICT", str(table.get("strict", False))).lower()
    return PluginSettings(
        strict=strict in ("1", "true", "yes"),
        block=tuple(name.strip() for name in names if name.strip()),
        options={name: value for name, value in table.items() if isinstance(value, dict)},
    )


def _table(kind: type[T], name: str, table: Any, env: Mapping[str, str]) -> T:
    if not isinstance(table, dict):
        raise ConfigError("must be a table", where=f"moorage.toml: {name}")
    fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in fields:
            raise ConfigError("there is no such setting", where=f"moorage.toml: {name}.{key}")
        values[key] = _checked(fields[key], value, f"moorage.toml: {name}.{key}")
    for key, field in fields.items():
        variable = f"MOORAGE_{name}_{key}".upper()
        if variable in env:
            values[key] = _checked(field, _parsed(env[variable]), variable)
    return kind(**values)


def _parsed(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text.lower(), text)


def _checked(field: "dataclasses.Field[Any]", value: Any, where: str) -> Any:
    bounds = field.metadata.get("range")
    if bounds is None:
        return value
    low, high = bounds
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ConfigError(f"must be a number from {low:g} to {high:g}", where=where)
    if not low <= value <= high:
        raise ConfigError(f"must be from {low:g} to {high:g}", where=where)
    return value
