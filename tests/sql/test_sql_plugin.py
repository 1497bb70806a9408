"""What the plugin contributes, and what it costs to ask (PLUG-1, PLUG-8, TASK-14)."""

import subprocess
import sys
from importlib.metadata import entry_points

import pluggy
import pytest

from moorage.clock import SystemClock
from moorage.contract import CLI_GROUP, PLUGIN_GROUP, PROJECT, hookspecs
from moorage_drivers.sql import plugin


@pytest.fixture
def manager() -> pluggy.PluginManager:
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(hookspecs)
    manager.register(plugin)
    manager.check_pending()
    return manager


@pytest.mark.req("PLUG-1", "TASK-14")
async def test_stores_are_contributed_by_scheme(manager: pluggy.PluginManager) -> None:
    ((sql, memory),) = manager.hook.moorage_stores()

    assert {"sqlite", "postgresql"} <= sql.schemes
    assert memory.schemes == {"memory"}
    assert memory.upgrade("memory://")
    async with memory.open("memory://", SystemClock(), True) as store:
        assert not store.durable


@pytest.mark.req("PLUG-1", "OPS-1")
def test_groups_are_contributed_and_announced(manager: pluggy.PluginManager) -> None:
    (groups,) = manager.hook.moorage_cli_groups()

    announced = {point.name for point in entry_points(group=CLI_GROUP) if point.value == plugin.__name__}
    assert announced == {group.name for group in groups} == {"db", "tasks"}
    assert all(group.load().info.help for group in groups)
    assert "sql" in {p.name for p in entry_points(group=PLUGIN_GROUP) if p.value == plugin.__name__}


@pytest.mark.req("PLUG-8")
def test_asking_the_plugin_imports_no_database() -> None:
    code = (
        "import sys; from moorage_drivers.sql import plugin; plugin.moorage_stores(); "
        "plugin.moorage_cli_groups(); print([m for m in ('sqlalchemy', 'alembic', 'psycopg', 'typer') "
        "if m in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
