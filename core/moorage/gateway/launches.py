"""Asking the launch validators (LAUNCH-1, PLUG-7)."""

import json
import logging
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from moorage.clock import SystemClock
from moorage.config import launch_request, resolve_path
from moorage.config.document import dotted
from moorage.contract import (
    ConfigFault,
    ExtensionsSnapshot,
    GatewayContext,
    LauncherGrammars,
    LaunchRefused,
    LaunchRequest,
    LaunchValidator,
)
from moorage.gateway.building import Builder, Built
from moorage.gateway.parts import Grammars
from moorage.host import PluginHost
from moorage.host.worker import GivenUp, Worker
from moorage.process_exit import EXITS
from moorage.settings import Settings

log = logging.getLogger(__name__)

VERDICT_SECONDS = 5.0


class LaunchJudges:
    """All launch validators as one. What no validator has judged may not start (fails closed)."""

    def __init__(self, validators: Sequence[Built[LaunchValidator]], host: PluginHost) -> None:
        self._validators = tuple(validators)
        self._host = host

    def judge(self, requests: Iterable[LaunchRequest]) -> None:
        """Blocks for as long as the validators take, each within a deadline. Raises `LaunchRefused`."""
        with Worker() as worker:
            for request in requests:
                if not self._validators:
                    raise LaunchRefused(
                        f"server {request.server!r}: no launch validator is installed, so nothing may be "
                        "registered over HTTP: install moorage-plugins, or write the server into the file"
                    )
                for validator in self._validators:
                    self._ask(validator, request, worker)

    def _ask(self, validator: Built[LaunchValidator], request: LaunchRequest, worker: Worker) -> None:
        try:
            with validator.account.call():
                answer = worker.run(
                    lambda: _verdict(validator.object, request), timeout_seconds=VERDICT_SECONDS
                )
        except (LaunchRefused, *EXITS):
            raise
        except GivenUp:
            fault = f"gave no verdict within {VERDICT_SECONDS:g} seconds"
        except _Exit as error:
            fault = f"raised {error}"
        except BaseException as error:
            fault = f"raised {type(error).__name__}"
        else:
            if answer is None:
                return
            fault = f"answered with {type(answer).__name__}; a verdict is None or LaunchRefused"
        text = f"launch validator {validator.name!r} {fault}"
        self._host.record_failure(validator.plugin, text)
        log.error("plugin %r: %s", validator.plugin, text)
        raise LaunchRefused(
            f"server {request.server!r}: {text} (plugin {validator.plugin!r}), so it may not start"
        )


class _Exit(Exception):
    """The validator raised what elsewhere would be an exit of the process."""


def _verdict(validator: LaunchValidator, request: LaunchRequest) -> object:
    """In the worker's thread, where no signal arrives (`moorage.host.worker`): whatever is raised here is
    the plugin's own."""
    try:
        answer: object = validator.validate(request)  # type: ignore[func-returns-value]
        return answer
    except EXITS as error:
        raise _Exit(type(error).__name__) from error


def launch_judges(builder: Builder) -> LaunchJudges:
    """The validators that plugins contribute. One that cannot be built would let pass what it is there to
    refuse, so it ends the start with a `ConfigError`."""
    return LaunchJudges(builder.all(builder.host.launch_validators(), required=True), builder.host)


def launch_faults(path: Path | None, settings: Settings, host: PluginHost) -> list[ConfigFault]:
    """What the API would refuse to start of the servers in a file; a file that cannot be read has none."""
    context = GatewayContext(
        home=settings.home,
        replica_id="check",
        database_url=settings.database_url,
        clock=SystemClock(),
        extensions=_NoServers(),
        settings={"plugins": settings.plugins.options},
    )
    builder = Builder(host, context, strict=False)
    context.provide(LauncherGrammars, Grammars.of(builder))
    judges = launch_judges(builder)
    faults = []
    for name, entry in _entries(path).items():
        try:
            judges.judge([launch_request(name, entry)])
        except LaunchRefused as refused:
            message = f"the API would refuse it: {refused}"
            faults.append(ConfigFault(where=dotted(("mcpServers", name)), message=message, server=name))
        except (TypeError, ValueError):
            continue  # an entry of the wrong form, which the check itself names
    return faults


def _entries(path: Path | None) -> dict[str, Any]:
    try:
        found = resolve_path(path, os.environ, Path.cwd())
        raw = json.loads(found.read_bytes()) if found else {}
    except (OSError, ValueError):
        return {}
    servers = raw.get("mcpServers") if isinstance(raw, dict) else None
    return {k: v for k, v in servers.items() if isinstance(v, dict)} if isinstance(servers, dict) else {}


class _NoServers:
    def current(self) -> ExtensionsSnapshot:
        return ExtensionsSnapshot()
