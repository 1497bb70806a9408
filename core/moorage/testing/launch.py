"""The conformance suite of launch validators (DX-2)."""

import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moorage.contract import GatewayContext, LaunchRequest, LaunchValidator, LaunchValidatorSpec
from moorage.testing.checks import Suite
from moorage.testing.context import gateway_context
from moorage.testing.launch_checks import LaunchChecks


@dataclass
class LaunchBench:
    """One validator, and how another process would build it."""

    suite: "LaunchValidatorConformance"
    gateway: GatewayContext
    validator: LaunchValidator

    def rebuilt(self) -> LaunchValidator:
        return self.suite.spec().build(self.gateway)


class LaunchValidatorConformance(Suite, LaunchChecks):
    """Holds a launch validator to the contract: it refuses with `LaunchRefused` alone, whatever it is
    asked; its verdict is stable; its messages name the server and quote no value.

    Subclass it as ``class TestMyValidator(LaunchValidatorConformance)``.
    """

    def spec(self) -> LaunchValidatorSpec:
        """What the plugin contributes."""
        raise NotImplementedError(f"{type(self).__name__} must say what its plugin contributes: spec()")

    def allowed(self) -> Sequence[LaunchRequest]:
        """Launches that must pass."""
        raise NotImplementedError(f"{type(self).__name__} must name launches that pass: allowed()")

    def refused(self) -> Sequence[LaunchRequest]:
        """Launches that must be refused."""
        raise NotImplementedError(f"{type(self).__name__} must name launches that are refused: refused()")

    def settings(self) -> Mapping[str, Any]:
        """The settings tables that ``build`` may read."""
        return {}

    def prepare(self, gateway: GatewayContext) -> None:
        """Provide what the validator asks of the gateway."""

    @asynccontextmanager
    async def _bench(self) -> AsyncIterator[LaunchBench]:
        with tempfile.TemporaryDirectory() as folder:
            gateway = gateway_context(Path(folder), settings=self.settings())
            self.prepare(gateway)
            yield LaunchBench(self, gateway, self.spec().build(gateway))
