"""Asking the launch validators (LAUNCH-1, PLUG-7)."""

import logging
from collections.abc import Iterable, Sequence

from moorage.contract import LaunchRefused, LaunchRequest, LaunchValidator
from moorage.gateway.building import Builder, Built
from moorage.host import PluginHost
from moorage.host.worker import GivenUp, Worker

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
            answer: object = worker.run(
                lambda: validator.object.validate(request), timeout_seconds=VERDICT_SECONDS
            )
        except LaunchRefused:
            raise
        except GivenUp:
            fault = f"gave no verdict within {VERDICT_SECONDS:g} seconds"
        except BaseException as error:
            # Raised by the plugin in the worker's thread, whatever it is: see `moorage.host.worker`.
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


def launch_judges(builder: Builder) -> LaunchJudges:
    """The validators that plugins contribute. One that cannot be built would let pass what it is there to
    refuse, so it ends the start with a `ConfigError`."""
    return LaunchJudges(builder.all(builder.host.launch_validators(), required=True), builder.host)
