"""Building contributions, so that one that fails costs only itself (PLUG-7)."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from moorage.accounts import Account
from moorage.contract import ConfigError, GatewayContext
from moorage.host import Contribution, PluginHost
from moorage.process_exit import is_exit

log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Built(Generic[T]):
    """An object that a plugin built, with its name and the plugin's."""

    name: str
    plugin: str
    object: T
    account: Account = field(default_factory=Account, compare=False)
    timeout_seconds: float | None = None
    """What its spec gives one asynchronous call, where it says so."""


@dataclass
class Builder:
    """Calls ``build`` of contributions and remembers which failed."""

    host: PluginHost
    context: GatewayContext
    strict: bool
    failed: dict[str, str] = field(default_factory=dict)
    """Contribution name → why it could not be built."""

    def all(
        self, contributions: Iterable[Contribution[Any]], *, required: bool = False, optional: bool = False
    ) -> list[Built[Any]]:
        """Build each; a failure is reported and left out. In strict mode, and where the gateway must not run
        without it (``required``), it ends the start with a `ConfigError` (PLUG-4). ``optional``: a build
        may return None, for what settings do not configure."""
        found = (self._one(one, one.spec.build, required, optional) for one in contributions)
        return [built for built in found if built is not None]

    def _one(
        self,
        contribution: Contribution[Any],
        build: Callable[[GatewayContext], Any],
        required: bool,
        optional: bool,
    ) -> Built[Any] | None:
        name, plugin = contribution.spec.name, contribution.plugin
        try:
            made = build(self.context)
            if made is None and optional:
                return None
            if made is None:
                raise TypeError("build returned None")
        except ConfigError:
            raise
        except BaseException as error:  # a build that calls `sys.exit` must not end the gateway, either
            if is_exit(error):
                raise
            reason = f"{name!r} could not be built: {type(error).__name__}: {error}"
            if self.strict or required:
                raise ConfigError(reason, where=f"plugin {plugin!r}") from error
            self.failed[name] = reason
            self.host.record_failure(plugin, reason)
            log.warning("plugin %r: %s", plugin, reason)
            return None
        seconds = getattr(contribution.spec, "timeout_seconds", None)
        return Built(name, plugin, made, self.host.account(plugin), seconds)
