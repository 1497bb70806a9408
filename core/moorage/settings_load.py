"""Reads `Settings` from ``moorage.toml`` and the environment; see `moorage.settings.load_settings`."""

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from moorage.contract.errors import ConfigError
from moorage.settings import (
    AssistantSettings,
    LimitSettings,
    PluginSettings,
    RunSettings,
    Settings,
    TaskSettings,
)
from moorage.settings_values import checked, from_variable, resolved

FILE_NAME = "moorage.toml"
DEFAULT_HOME = ".moorage"
DEFAULT_DATABASE = "moorage.sqlite"

TABLES: Mapping[str, type[Any]] = {
    "plugins": PluginSettings,
    "tasks": TaskSettings,
    "assistants": AssistantSettings,
    "runs": RunSettings,
    "limits": LimitSettings,
}
TOP_VARIABLES: Mapping[str, str] = {
    "home": "MOORAGE_HOME",
    "database_url": "MOORAGE_DATABASE_URL",
    "extensions_config": "MOORAGE_EXTENSIONS_CONFIG_PATH",
}
_OWN_NAMES = {("plugins", "block"): "MOORAGE_BLOCK_PLUGINS", ("plugins", "directory"): "MOORAGE_PLUGINS_DIR"}
_DATABASE_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:.+")


def variable_name(table: str, key: str) -> str:
    """The variable that sets a key of one of the core's tables."""
    return _OWN_NAMES.get((table, key), f"MOORAGE_{table.upper()}_{key.upper()}")


def table_fields(table: str) -> list[Any]:
    """The fields of one of the core's tables that a file or a variable may set."""
    return [item for item in fields(TABLES[table]) if item.name != "options"]


@dataclass(frozen=True, slots=True)
class _Source:
    """What has been read, and what paths in it count from."""

    content: Mapping[str, Any]
    file: Path | None
    env: Mapping[str, str]
    cwd: Path

    @property
    def user_home(self) -> str | None:
        return self.env.get("HOME")

    def place(self, *keys: str) -> str:
        return f"{self.file or FILE_NAME}: {'.'.join(keys)}"

    def variable(self, name: str) -> str | None:
        return self.env.get(name, "").strip() or None

    @property
    def base(self) -> Path:
        return self.file.parent if self.file else self.cwd


def load_settings(
    *, env: Mapping[str, str], cwd: Path, home: Path | None = None, config: Path | None = None
) -> Settings:
    """See `moorage.settings.load_settings`."""
    cwd = cwd.absolute()
    source, home = _locate(env, cwd, home, config)
    _refuse_unknown_variables(env)
    _refuse_unknown_keys(source)
    tables = {name: kind(**_table(source, name)) for name, kind in TABLES.items()}
    other = {
        name: table
        for name, table in source.content.items()
        if name not in TABLES and isinstance(table, Mapping)
    }
    return Settings(
        home=home,
        database_url=_database_url(source, home),
        extensions_config=_path(source, "extensions_config"),
        other=other,
        source=source.file,
        **tables,
    )


def _locate(
    env: Mapping[str, str], cwd: Path, home: Path | None, config: Path | None
) -> tuple[_Source, Path]:
    """Which file counts and where the home is; either may name the other."""
    bare = _Source({}, None, env, cwd)
    if home is None and (text := bare.variable("MOORAGE_HOME")):
        home = resolved(text, base=cwd, user_home=bare.user_home)
    elif home is not None:
        home = home.absolute()
    explicit = resolved(str(config), base=cwd, user_home=bare.user_home) if config else None
    if explicit is None and (text := bare.variable("MOORAGE_CONFIG")):
        explicit = resolved(text, base=cwd, user_home=bare.user_home)
    if explicit is not None:
        named = str(explicit) if config else f"MOORAGE_CONFIG ({explicit})"
        if not explicit.exists():
            raise ConfigError("there is no such file", where=named)
        file: Path | None = explicit
    elif (cwd / FILE_NAME).exists():
        file = cwd / FILE_NAME
    else:
        in_home = (home or cwd / DEFAULT_HOME) / FILE_NAME
        file = in_home if in_home.exists() else None
    source = _Source(_content(file) if file else {}, file, env, cwd)
    if home is None:
        home = _path(source, "home") or cwd / DEFAULT_HOME
        if file and file.parent == cwd / DEFAULT_HOME and home != file.parent:
            raise ConfigError(
                "a file that was found in the home cannot move the home: set MOORAGE_HOME",
                where=source.place("home"),
            )
    return source, home


def _content(file: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ConfigError(
            f"the file cannot be read: {error.strerror or type(error).__name__}", where=str(file)
        ) from None
    except UnicodeDecodeError:
        raise ConfigError("the file is no UTF-8 text", where=str(file)) from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"the file is no valid TOML: {error}", where=str(file)) from None


def _refuse_unknown_variables(env: Mapping[str, str]) -> None:
    known = {variable_name(table, item.name) for table in TABLES for item in table_fields(table)}
    prefixes = tuple(f"MOORAGE_{table.upper()}_" for table in TABLES)
    for name in sorted(env):
        if name.startswith(prefixes) and name not in known:
            raise ConfigError(_unknown("variable", name, known), where=name)


def _refuse_unknown_keys(source: _Source) -> None:
    for name, value in source.content.items():
        if name in TABLES:
            if not isinstance(value, Mapping):
                raise ConfigError(f"must be a table, [{name}]", where=source.place(name))
            continue
        if name in TOP_VARIABLES:
            continue
        close = difflib.get_close_matches(name, TABLES, n=1, cutoff=0.8)
        # A table may belong to another distribution, but hardly one that is a letter away from ours.
        if close or not isinstance(value, Mapping):
            raise ConfigError(_unknown("setting", name, {*TABLES, *TOP_VARIABLES}), where=source.place(name))


def _table(source: _Source, table: str) -> dict[str, Any]:
    known = {item.name: item for item in table_fields(table)}
    values: dict[str, Any] = {}
    options: dict[str, Mapping[str, Any]] = {}
    for key, value in source.content.get(table, {}).items():
        if key in known:
            values[key] = checked(
                known[key],
                value,
                where=source.place(table, key),
                base=source.base,
                user_home=source.user_home,
            )
        elif table == "plugins" and isinstance(value, Mapping):
            options[key] = value
        else:
            raise ConfigError(_unknown("setting", key, known), where=source.place(table, key))
    for key, item in known.items():
        name = variable_name(table, key)
        if (text := source.variable(name)) is None:
            continue
        value = from_variable(item.type, text, where=name)
        value = checked(item, value, where=name, base=source.cwd, user_home=source.user_home)
        # Blocking adds up: a variable must not bring back what the file blocks.
        values[key] = (*values.get(key, ()), *value) if (table, key) == ("plugins", "block") else value
    if options:
        values["options"] = options
    return values


def _path(source: _Source, key: str) -> Path | None:
    name = TOP_VARIABLES[key]
    if (text := source.variable(name)) is not None:
        if "\0" in text:
            raise ConfigError("must be a path", where=name)
        return resolved(text, base=source.cwd, user_home=source.user_home)
    value = source.content.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise ConfigError("must be a path", where=source.place(key))
    return resolved(value, base=source.base, user_home=source.user_home)


def _database_url(source: _Source, home: Path) -> str:
    # Never quoted in an error: it may hold a password.
    if (text := source.variable("MOORAGE_DATABASE_URL")) is not None:
        value, where = text, "MOORAGE_DATABASE_URL"
    elif "database_url" in source.content:
        value, where = source.content["database_url"], source.place("database_url")
    else:
        return f"sqlite:///{home / DEFAULT_DATABASE}"
    if not isinstance(value, str) or not _DATABASE_URL.fullmatch(value):
        raise ConfigError(
            "must be a database URL such as sqlite:////var/lib/moorage.db or postgresql://user@host/name",
            where=where,
        )
    return value


def _unknown(what: str, name: str, known: Any) -> str:
    near = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.6)
    if near:
        return f"there is no such {what}; did you mean {near[0]}?"
    return f"there is no such {what}; there are {', '.join(sorted(known))}"
