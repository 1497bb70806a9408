"""For plugin authors: conformance suites, fakes, a host with one plugin, a gateway as a subprocess (DX-2).

::

    from moorage.testing import DriverConformance

    class TestMyDriver(DriverConformance):
        ...

Installing moorage-core also installs a pytest plugin with the fixtures ``moorage_clock``,
``moorage_context``, ``moorage_host`` and ``moorage_gateway`` (`moorage.testing.plugin`). Names are
imported when they are first asked for, so that a test run that uses none of them pays for none.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moorage.testing.checks import ConformanceFailure, Finding, run_suite
    from moorage.testing.clock import FakeClock, eventually
    from moorage.testing.context import StaticExtensions, gateway_context, server_config
    from moorage.testing.driver import DriverConformance
    from moorage.testing.hosting import host_with
    from moorage.testing.http_driver import HttpDriverConformance
    from moorage.testing.http_remote import HttpReply, HttpRequest
    from moorage.testing.interceptor import InterceptorConformance
    from moorage.testing.launch import LaunchValidatorConformance
    from moorage.testing.process import GatewayProcess
    from moorage.testing.remote import FaultyRemote, Operation, Said, Trouble
    from moorage.testing.sink import SinkConformance
    from moorage.testing.tool_driver import ToolDriverConformance

_HOMES = {
    "ConformanceFailure": "checks",
    "DriverConformance": "driver",
    "FakeClock": "clock",
    "FaultyRemote": "remote",
    "Finding": "checks",
    "GatewayProcess": "process",
    "HttpDriverConformance": "http_driver",
    "HttpReply": "http_remote",
    "HttpRequest": "http_remote",
    "InterceptorConformance": "interceptor",
    "LaunchValidatorConformance": "launch",
    "Operation": "remote",
    "Said": "remote",
    "SinkConformance": "sink",
    "StaticExtensions": "context",
    "ToolDriverConformance": "tool_driver",
    "Trouble": "remote",
    "eventually": "clock",
    "gateway_context": "context",
    "host_with": "hosting",
    "run_suite": "checks",
    "server_config": "context",
}

__all__ = [
    "ConformanceFailure",
    "DriverConformance",
    "FakeClock",
    "FaultyRemote",
    "Finding",
    "GatewayProcess",
    "HttpDriverConformance",
    "HttpReply",
    "HttpRequest",
    "InterceptorConformance",
    "LaunchValidatorConformance",
    "Operation",
    "Said",
    "SinkConformance",
    "StaticExtensions",
    "ToolDriverConformance",
    "Trouble",
    "eventually",
    "gateway_context",
    "host_with",
    "run_suite",
    "server_config",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{home}"), name)
