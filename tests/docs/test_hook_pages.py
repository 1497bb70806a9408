"""A page a hook, with an example that runs; the contract changes as its page says (DX-3, PLUG-6)."""

import copy
import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from moorage.contract import API_VERSION, hookspecs
from moorage.host.hooks import HOOKS
from moorage.host.versions import incompatibility

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "reference" / "hooks"


def tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.req("DX-3")
def test_hookspecs_pages_and_examples_are_the_same_and_every_example_runs() -> None:
    """The pages hold what the examples print, so making them runs every one."""
    specs = {name for name in vars(hookspecs) if name.startswith("moorage_")}
    assert specs == set(HOOKS)
    assert {path.stem for path in (FOLDER / "examples").glob("*.py")} == specs
    made = tool("hook_pages").pages()
    assert {path.name for path in FOLDER.glob("*.md")} == set(made)
    for name, text in made.items():
        assert (FOLDER / name).read_text() == text, f"run tools/hook_pages.py: {name}"


@pytest.mark.req("PLUG-6")
def test_the_contract_is_what_its_record_says() -> None:
    tools = tool("contract_record")
    recorded = json.loads(tools.path().read_text())
    now = json.loads(json.dumps(tools.record()))
    assert tools.incompatible(recorded, now) == []
    assert now == recorded, "run tools/contract_record.py: the change is compatible"
    page = (ROOT / "docs" / "reference" / "plugin-api.md").read_text()
    assert tools.path().name in page
    assert f"~={'.'.join(API_VERSION.split('.')[:2])}.0" in page


def _without(name: str, part: str, key: str) -> Any:
    return lambda record: record[name][part].pop(key)


CHANGES = {
    "a name is gone": lambda record: record.pop("TaskDriver"),
    "a field is gone": _without("TaskRef", "fields", "remote_id"),
    "a method is gone": _without("TaskDriver", "methods", "cancel"),
    "a method is new": lambda record: record["TaskDriver"]["methods"].update(pause="async (self)"),
    "a member is gone": _without("TaskStatus", "members", "WORKING"),
    "a field has no default": lambda record: record["TaskRef"]["fields"].update(
        more={"type": "str", "default": False}
    ),
    "another type": lambda record: record["TaskRef"]["fields"]["server"].update(type="int"),
    "another signature": lambda record: record["check_header"].update(signature="()"),
}
ADDITIONS = {
    "a name": lambda record: record.update(New={"kind": "other"}),
    "a field with a default": lambda record: record["TaskRef"]["fields"].update(
        more={"type": "str", "default": True}
    ),
    "a member": lambda record: record["TaskStatus"]["members"].update(PAUSED="paused"),
}


@pytest.mark.req("PLUG-6")
@pytest.mark.parametrize("change", sorted([*CHANGES, *ADDITIONS]))
def test_changes_that_break_plugins_are_told_from_those_that_do_not(change: str) -> None:
    tools = tool("contract_record")
    old = json.loads(json.dumps(tools.record()))
    new = copy.deepcopy(old)
    {**CHANGES, **ADDITIONS}[change](new)
    assert bool(tools.incompatible(old, new)) is (change in CHANGES)


@pytest.mark.req("PLUG-6")
def test_the_pages_range_is_one_that_this_version_meets() -> None:
    page = (ROOT / "docs" / "reference" / "plugin-api.md").read_text()
    (declared,) = re.findall(r'^MOORAGE_API = "(.+)"$', page, re.MULTILINE)
    assert incompatibility(declared) is None
