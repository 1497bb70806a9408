"""The rules that keep the house: contract ← host, config, tasks, runs, calls ← gateway ← cli, testing."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = {
    "core": "moorage",
    "builtin_drivers": "moorage_drivers",
    "plugins": "moorage_plugins",
    "api": "moorage_api",
}

# Package → what of ours it may import. The longest prefix of a module's name counts.
MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "moorage": ("moorage",),
    "moorage.contract": ("moorage.contract",),
    # One thing in three modules: what there is, how it is read, how a value is checked.
    "moorage.settings": (
        "moorage.contract",
        "moorage.settings",
        "moorage.settings_load",
        "moorage.settings_values",
    ),
    "moorage.settings_load": ("moorage.contract", "moorage.settings", "moorage.settings_values"),
    "moorage.settings_values": ("moorage.contract", "moorage.settings"),
    "moorage.clock": ("moorage.contract",),
    # What plugins did wrong is written down where it happens, and told by the host.
    "moorage.accounts": ("moorage.process_exit",),
    "moorage.process_exit": (),
    "moorage.config": ("moorage.contract", "moorage.config", "moorage.host", "moorage.process_exit"),
    "moorage.host": ("moorage.contract", "moorage.host", "moorage.settings", "moorage.accounts"),
    "moorage.calls": ("moorage.contract", "moorage.calls", "moorage.accounts", "moorage.process_exit"),
    "moorage.tasks": (
        "moorage.contract",
        "moorage.tasks",
        "moorage.settings",
        "moorage.accounts",
        "moorage.process_exit",
    ),
    "moorage.runs": (
        "moorage.contract",
        "moorage.runs",
        "moorage.settings",
        "moorage.tasks.prompt",
        "moorage.accounts",
        "moorage.process_exit",
    ),
    "moorage.gateway": ("moorage",),
    # The kit drives plugins as the gateway does, so it lies on top of it.
    "moorage.testing": ("moorage",),
    "moorage_drivers": ("moorage.contract", "moorage_drivers"),
    # The operator's commands on the database show tasks as the API does, read the settings for the URL, and
    # answer tasks through the drivers of a gateway.
    "moorage_drivers.sql": (
        "moorage.contract",
        "moorage_drivers.sql",
        "moorage.clock",
        "moorage.tasks.views",
        "moorage.settings_load",
        "moorage.gateway.partial",
        "moorage.host",
    ),
    "moorage_drivers.mcp": ("moorage.contract", "moorage_drivers.mcp"),
    "moorage_drivers.ordinary": ("moorage.contract", "moorage_drivers.ordinary"),
    # Both write text of servers into messages, which one module neutralises (NOTE-5).
    "moorage_drivers.assistants": (
        "moorage.contract",
        "moorage_drivers.assistants",
        "moorage.tasks.prompt",
        "moorage.tasks.views",
    ),
    "moorage_drivers.thread_sink": (
        "moorage.contract",
        "moorage_drivers.thread_sink",
        "moorage.tasks.prompt",
        "moorage.tasks.event_stream",
    ),
    "moorage_drivers.example_server": ("moorage_drivers.example_server",),
    "moorage_plugins": ("moorage.contract", "moorage_plugins"),
    "moorage_api": ("moorage", "moorage_api"),
}

# Library → the only packages that may import it.
ONLY_IN: dict[str, tuple[str, ...]] = {
    "litestar": ("moorage_api",),
    "sqlalchemy": ("moorage_drivers.sql",),
    "alembic": ("moorage_drivers.sql",),
    "mcp": ("moorage_drivers.mcp", "moorage_drivers.mcp_tasks", "moorage_drivers.example_server"),
    "langchain_mcp_adapters": ("moorage_drivers.mcp",),
    "langgraph": ("moorage_drivers.assistants", "moorage_drivers.mcp"),
    "langchain": ("moorage_drivers.assistants",),
    "pluggy": ("moorage.contract.markers", "moorage.host"),
}


def modules() -> Iterator[tuple[str, Path]]:
    for folder, package in FOLDERS.items():
        for path in sorted((ROOT / folder / package).rglob("*.py")):
            name = ".".join(path.relative_to(ROOT / folder).with_suffix("").parts)
            yield name.removesuffix(".__init__"), path


def imports(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative import"
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)


def within(name: str, packages: tuple[str, ...]) -> bool:
    return any(name == one or name.startswith(one + ".") for one in packages)


def rule_of(module: str) -> tuple[str, ...]:
    fitting = [package for package in MAY_IMPORT if within(module, (package,))]
    return MAY_IMPORT[max(fitting, key=len)]


def test_packages_import_only_what_lies_below_them() -> None:
    wrong = [
        f"{module}:{line} imports {name}"
        for module, path in modules()
        for name, line in imports(path)
        if name.partition(".")[0] in FOLDERS.values() and not within(name, rule_of(module))
    ]
    assert wrong == []


def test_a_plugin_knows_no_other_plugin() -> None:
    wrong = [
        f"{module}:{line} imports {name}"
        for module, path in modules()
        for name, line in imports(path)
        if module.startswith("moorage_plugins.")
        and name.startswith("moorage_plugins.")
        and name.split(".")[1] != module.split(".")[1]
    ]
    assert wrong == []


def test_each_library_has_its_place() -> None:
    wrong = [
        f"{module}:{line} imports {name}"
        for module, path in modules()
        for name, line in imports(path)
        if (owners := ONLY_IN.get(name.partition(".")[0])) and not within(module, owners)
    ]
    assert wrong == []


@pytest.mark.req("PLUG-1")
def test_the_core_depends_on_none_of_the_other_distributions() -> None:
    table = tomllib.loads((ROOT / "core/pyproject.toml").read_text())["project"]
    assert not [one for one in table["dependencies"] if one.startswith("moorage")]


def test_versions_are_equal_and_folders_are_no_packages() -> None:
    projects = [
        tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"] for folder in (".", *FOLDERS)
    ]
    (version,) = {project["version"] for project in projects}
    pinned = [one for project in projects for one in project["dependencies"] if one.startswith("moorage")]
    assert {one.partition("==")[2] for one in pinned} == {version}
    namespace: dict[str, str] = {}
    exec((ROOT / "core/moorage/__init__.py").read_text(), namespace)
    assert namespace["__version__"] == version
    assert not [folder for folder in FOLDERS if (ROOT / folder / "__init__.py").exists()]


def test_what_the_contract_exports_is_what_its_modules_define() -> None:
    import moorage.contract as contract

    assert sorted(contract.__all__) == sorted(set(contract.__all__))
    assert not [name for name in contract.__all__ if not hasattr(contract, name)]
