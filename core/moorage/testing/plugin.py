"""The pytest plugin: fixtures for the tests of plugins (DX-2).

It is active wherever moorage-core is installed, so it imports nothing of Moorage before a fixture is used.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from moorage.contract import GatewayContext
    from moorage.host import PluginHost
    from moorage.testing.clock import FakeClock
    from moorage.testing.process import GatewayProcess


@pytest.fixture
def moorage_clock() -> "FakeClock":
    """A clock that stands still until the test moves it."""
    from moorage.testing.clock import FakeClock

    return FakeClock()


@pytest.fixture
def moorage_context(tmp_path: Path, moorage_clock: "FakeClock") -> "GatewayContext":
    """What ``build`` is given: a temporary home, `moorage_clock`, no servers and no store."""
    from moorage.testing.context import gateway_context

    return gateway_context(tmp_path, clock=moorage_clock)


@pytest.fixture
def moorage_host() -> "Callable[..., PluginHost]":
    """`moorage.testing.host_with`: a host with just the plugins that it is called with."""
    from moorage.testing.hosting import host_with

    return host_with


@pytest.fixture
def moorage_gateway(tmp_path: Path) -> "Iterator[Callable[..., GatewayProcess]]":
    """Starts gateways on temporary homes, with everything that is installed: call it with the extensions
    config and, where needed, ``environment=``. They are stopped when the test ends."""
    from contextlib import ExitStack

    from moorage.testing.process import GatewayProcess

    with ExitStack() as stack:
        count = 0

        def start(config: object = None, **options: object) -> GatewayProcess:
            nonlocal count
            count += 1
            home = tmp_path / f"gateway-{count}"
            made = GatewayProcess(home, config=config, **options)  # type: ignore[arg-type]
            stack.enter_context(made)
            return made

        yield start
