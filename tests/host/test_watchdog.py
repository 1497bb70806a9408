"""What blocks the event loop is named (PLUG-7)."""

import asyncio
import importlib.util
import logging
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from support.clock import eventually

from moorage.gateway.watchdog import watchdog
from moorage.host import LoadReport, PluginHost, PluginState

BLOCKER = "import time\n\ndef hold(seconds):\n    time.sleep(seconds)\n"


@pytest.fixture
def blocker(tmp_path: Path) -> Iterator[ModuleType]:
    """A plugin's module that blocks whoever calls it."""
    path = tmp_path / "blocking_plugin.py"
    path.write_text(BLOCKER)
    spec = importlib.util.spec_from_file_location("blocking_plugin", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["blocking_plugin"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["blocking_plugin"]


def host() -> PluginHost:
    report = LoadReport(
        name="slowpoke",
        distribution="d",
        version="1",
        entry_point="blocking_plugin",
        state=PluginState.LOADED,
    )
    return PluginHost([report], [])


@pytest.mark.req("PLUG-7")
async def test_a_plugin_that_blocks_the_loop_is_named_once(
    blocker: ModuleType, caplog: pytest.LogCaptureFixture
) -> None:
    plugins = host()
    async with watchdog(plugins, after_seconds=0.1):
        await asyncio.sleep(0.05)
        blocker.hold(0.6)
        await eventually(lambda: plugins.failures("slowpoke"))
    (failure,) = plugins.failures("slowpoke")
    assert "blocked the event loop" in failure.text
    assert "blocking_plugin" in failure.text
    assert "hold" in failure.text
    told = [record.getMessage() for record in caplog.records if record.name == "moorage.watchdog"]
    assert len(told) == 1
    assert "'slowpoke'" in told[0]


@pytest.mark.req("PLUG-7")
async def test_what_is_nobodys_is_named_by_its_place(caplog: pytest.LogCaptureFixture) -> None:
    plugins = host()
    async with watchdog(plugins, after_seconds=0.1):
        await asyncio.sleep(0.05)
        time.sleep(0.4)
        await eventually(lambda: caplog.records)
    assert plugins.failures("slowpoke") == ()
    assert "test_watchdog" in caplog.text


async def test_a_free_loop_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "moorage.watchdog"):
        async with watchdog(host(), after_seconds=2.0):
            await asyncio.sleep(0.1)
    assert not [record for record in caplog.records if record.name == "moorage.watchdog"]
