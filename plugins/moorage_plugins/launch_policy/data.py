"""The generated data on the launchers: see ``tools/launcher_grammars.py`` (LAUNCH-7)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from moorage.contract import LauncherGrammar

SHELL_OPTIONS = frozenset(
    {"-c", "--call", "-e", "--eval", "--print", "--shell", "--node-arg", "--node-options"}
)
"""Options that run code, by LAUNCH-3."""
NPX_EXEC = SHELL_OPTIONS | {"--script-shell"}
NPX_PATHS = frozenset(
    {
        "--cache", "--userconfig", "--globalconfig", "--prefix", "--git", "--node-gyp", "--init-module",
        "--workspace", "--workspaces", "--include-workspace-root",
    }
)  # fmt: skip
"""Options of npm that make it run, or read its configuration from, what lies on the disk (LAUNCH-9)."""
UVX_EXEC = frozenset({"--call", "--eval", "--print", "--shell", "--node-arg", "--node-options"})
"""uvx owns none of them: a tripwire, without the short spellings, which mean something else there."""
UVX_PATHS = frozenset(
    {
        "--with-editable", "--with-requirements", "--overrides", "--env-file", "--config-file", "--cache-dir",
        "--directory", "--project",
    }
)  # fmt: skip
"""Options of uvx that name something on the disk which it then runs, or which says what to run."""


@dataclass(frozen=True, slots=True)
class NpmTables:
    """How npx and npm read their arguments.

    ``types``: option name → names of its value types; ``shorthands``: short name → options that stand for
    it. ``switches`` and ``values`` are npx's own lists of what takes no value and what always takes one,
    ``removed`` what it cuts out.
    """

    types: Mapping[str, tuple[str, ...]]
    shorthands: Mapping[str, tuple[str, ...]]
    switches: frozenset[str]
    values: frozenset[str]
    removed: frozenset[str]
    version: str


@cache
def _document() -> Any:
    text = files("moorage_plugins.launch_policy").joinpath("grammars.json").read_text(encoding="utf-8")
    return json.loads(text)


@cache
def npm_tables() -> NpmTables:
    npx = _document()["npx"]
    return NpmTables(
        types={name: tuple(types) for name, types in npx["types"].items()},
        shorthands={name: tuple(options) for name, options in npx["shorthands"].items()},
        switches=frozenset(npx["switches"]),
        values=frozenset(npx["values"]),
        removed=frozenset(npx["removed"]),
        version=npx["version"],
    )


@cache
def grammars() -> tuple[LauncherGrammar, ...]:
    """Those of the two package launchers, as every launch validator may use them (LAUNCH-5)."""
    npm, uvx = npm_tables(), _document()["uvx"]
    switches = {_dashed(name) for name in npm.switches} - {"-p"}
    return (
        LauncherGrammar(
            command="npx",
            boolean_options=frozenset(switches),
            value_options=frozenset({_dashed(name) for name in npm.types} - switches) | {"-p", "-c"},
            exec_options=NPX_EXEC,
            path_options=NPX_PATHS,
            single_dash_long=True,
            source_version=npm.version,
        ),
        LauncherGrammar(
            command="uvx",
            boolean_options=frozenset(uvx["boolean_options"]),
            value_options=frozenset(uvx["value_options"]),
            exec_options=UVX_EXEC,
            path_options=UVX_PATHS,
            unknown_takes_value=False,
            source_version=uvx["version"],
        ),
    )


def _dashed(name: str) -> str:
    return f"-{name}" if len(name) == 1 else f"--{name}"
