"""The pages on settings and command line tell what the code does."""

import dataclasses
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from moorage.cli import exits
from moorage.settings import AssistantSettings, LimitSettings, PluginSettings, TaskSettings

ROOT = Path(__file__).parents[2]
SETTINGS = (ROOT / "docs/reference/settings.md").read_text()
CLI = (ROOT / "docs/reference/cli.md").read_text()


def rows_of(page: str, heading: str) -> list[list[str]]:
    section = page.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def shown(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, str):
        return f'`"{value}"`'
    return f"{value:,.10g}" if isinstance(value, int | float) else str(value)


@pytest.mark.req("CONF-6", "TASK-25")
@pytest.mark.parametrize(
    ("name", "kind"), [("tasks", TaskSettings), ("assistants", AssistantSettings), ("limits", LimitSettings)]
)
def test_every_setting_is_there_with_its_default_and_range(name: str, kind: type[Any]) -> None:
    rows = {row[0].strip("`"): row[1:3] for row in rows_of(SETTINGS, f"`[{name}]`")}
    fields = {field.name: field for field in dataclasses.fields(kind)}
    assert list(rows) == list(fields)
    for key, (default, bounds) in rows.items():
        assert default == shown(fields[key].default), key
        if limits := fields[key].metadata.get("range"):
            assert bounds == f"{shown(limits[0])} to {shown(limits[1])}", key


@pytest.mark.req("CONF-6")
def test_the_plugins_table_is_whole() -> None:
    rows = [row[0].strip("`") for row in rows_of(SETTINGS, "`[plugins]`")]
    assert rows == [field.name for field in dataclasses.fields(PluginSettings) if field.name != "options"]


@pytest.mark.req("OPS-1")
def test_every_command_is_listed_and_takes_help() -> None:
    listed = set(re.findall(r"^\| `moorage (\w+)` ", CLI, re.MULTILINE))
    helped = subprocess.run(
        [sys.executable, "-m", "moorage", "--help"], capture_output=True, text=True, check=True
    ).stdout
    there = set(re.findall(r"^  (\w+) ", helped.split("commands:", 1)[1], re.MULTILINE))
    assert listed == there
    for command in sorted(listed):
        done = subprocess.run(
            [sys.executable, "-m", "moorage", command, "--help"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, command
        row = re.search(rf"^\| `moorage {command}` .*$", CLI, re.MULTILINE)
        assert row
        for word in re.findall(r"`(--\w+|[a-z]+)", row[0].split("|")[3]):
            assert word in done.stdout, f"{command}: {word}"


@pytest.mark.req("OPS-1")
def test_the_exit_statuses_are_those_of_the_code() -> None:
    statuses = {int(row[0]) for row in rows_of(CLI, "Exit statuses")}
    assert {exits.OK, exits.PROBLEM, exits.USAGE, exits.MISSING, exits.INTERRUPTED} <= statuses
    assert statuses == {0, 1, 2, 3, 4, 5, 130}
