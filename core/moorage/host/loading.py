"""Loads one candidate at a time; whatever it does ends in a report, never in an exception (PLUG-4)."""

import logging
import sys
import time
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

import pluggy

from moorage.contract import API_VERSION, PROJECT, hookspecs
from moorage.host.discovery import Candidate
from moorage.host.hooks import Hook
from moorage.host.implementations import BadPlugin, contributions, implementations
from moorage.host.reports import ContributionInfo, LoadReport, PluginState, bounded, describe
from moorage.host.versions import InvalidRange, incompatibility
from moorage.host.worker import GivenUp, Worker

LOAD_TIMEOUT_SECONDS = 30.0
"""What importing a plugin and calling its hooks may take."""

_log = logging.getLogger("moorage.plugins")


@dataclass(frozen=True, slots=True)
class Loaded:
    """A candidate's report and, where it is loaded, all that it contributes: everything or nothing."""

    report: LoadReport
    plugin: object = None
    specs: tuple[tuple[Hook, Any], ...] = ()


@dataclass(slots=True)
class _Progress:
    """What is known of a candidate so far, for the report of one that stops half-way."""

    plugin: object = None
    api_range: str | None = None
    hooks: tuple[str, ...] = ()
    stage: str = "importing it"
    specs: list[tuple[Hook, Any]] = field(default_factory=list)


class _Incompatible(Exception):
    pass


class Loader:
    """Loads candidates in the order in which it is given them. Use it as a context manager."""

    def __init__(self, *, timeout_seconds: float = LOAD_TIMEOUT_SECONDS) -> None:
        self._timeout_seconds = timeout_seconds
        self._worker = Worker()
        self._manager = pluggy.PluginManager(PROJECT)
        self._manager.add_hookspecs(hookspecs)

    def __enter__(self) -> "Loader":
        self._worker.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._worker.__exit__()

    def load(self, candidate: Candidate, *, blocked: Collection[str] = ()) -> Loaded:
        """Import it, check it, call its hooks; raises nothing but what stops this very process (Ctrl-C)."""
        report = _first_report(candidate)
        if candidate.name in blocked:
            return Loaded(replace(report, state=PluginState.BLOCKED, error="blocked by settings"))
        progress = _Progress()
        started = time.perf_counter()
        state, error = PluginState.FAILED, None
        try:
            self._worker.run(
                lambda: _collect(candidate, progress, self._manager), timeout_seconds=self._timeout_seconds
            )
            progress.stage = "registering it"
            self._register(progress.plugin, candidate.name)
            state = PluginState.LOADED
        except GivenUp:
            error = f"{progress.stage} took more than {self._timeout_seconds:g} seconds; it was given up"
        except _Incompatible as incompatible:
            state, error = PluginState.REFUSED, str(incompatible)
        except (BadPlugin, InvalidRange) as bad:
            error = str(bad)
        except BaseException as raised:
            if not _from_plugin(raised):
                raise
            _log.debug("plugin %r of %s", candidate.name, report.source, exc_info=raised)
            error = f"{progress.stage} raised {describe(raised)}{_hint(raised, candidate)}"
        report = replace(
            report,
            state=state,
            error=bounded(error) if error else None,
            hooks=progress.hooks,
            api_range=progress.api_range,
            seconds=time.perf_counter() - started,
        )
        if state is not PluginState.LOADED:
            return Loaded(report)
        infos = tuple(_info(hook, spec) for hook, spec in progress.specs)
        return Loaded(replace(report, contributions=infos), progress.plugin, tuple(progress.specs))

    def _register(self, plugin: object, name: str) -> None:
        for other, registered in self._manager.list_name_plugin():
            if registered is plugin:
                raise BadPlugin(f"its entry point names the very object that plugin {other!r} is")
        self._manager.register(plugin, name=name)

    def forget(self, loaded: Loaded) -> None:
        """None of its hooks stays registered."""
        self._manager.unregister(name=loaded.report.name)


def unloaded(candidate: Candidate, state: PluginState, error: str) -> Loaded:
    """A candidate that is judged without having been imported."""
    return Loaded(replace(_first_report(candidate), state=state, error=bounded(error)))


def _first_report(candidate: Candidate) -> LoadReport:
    return LoadReport(
        name=candidate.name,
        distribution=candidate.distribution,
        version=candidate.version,
        entry_point=candidate.entry_point,
        state=PluginState.FAILED,
        requested=candidate.requested,
    )


def _collect(candidate: Candidate, progress: _Progress, manager: pluggy.PluginManager) -> None:
    plugin = progress.plugin = candidate.load()
    progress.stage = "reading its declarations"
    declared = _declared_range(plugin, candidate.module)
    if declared is not None:
        progress.api_range = str(declared)[:100]
        if reason := incompatibility(declared):
            raise _Incompatible(reason)
    found = implementations(plugin, manager)
    progress.hooks = tuple(implementation.hook.name for implementation in found)
    for implementation in found:
        progress.stage = f"its hook {implementation.hook.name}"
        progress.specs.extend((implementation.hook, spec) for spec in contributions(implementation))


def _declared_range(plugin: object, module: str | None) -> object:
    declared = getattr(plugin, "MOORAGE_API", None)
    if declared is None and module is not None:
        # The entry point may name an object of the module that makes the declaration.
        declared = getattr(sys.modules.get(module), "MOORAGE_API", None)
    return declared


def _from_plugin(raised: BaseException) -> bool:
    """Whether it came out of the worker; else it is a signal to this process, which waits for the worker."""
    traceback = raised.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code in (_collect.__code__, Loader._register.__code__):
            return True
        traceback = traceback.tb_next
    return False


def _hint(raised: BaseException, candidate: Candidate) -> str:
    if isinstance(raised, ImportError) and (raised.name or "").partition(".")[0] == "moorage":
        return f"; this is plugin API {API_VERSION}, and the plugin may be made for another"
    if isinstance(raised, ModuleNotFoundError) and candidate.module is not None and raised.name:
        if candidate.module == raised.name or candidate.module.startswith(f"{raised.name}."):
            return (
                f"; the metadata of {candidate.distribution} may be stale: install it again, or uninstall it"
            )
        return f"; {candidate.distribution} may be installed without all that it requires"
    return ""


def _info(hook: Hook, spec: Any) -> ContributionInfo:
    section = getattr(spec, "section", None)
    return ContributionInfo(
        hook=hook.name,
        name=getattr(spec, hook.label),
        precedence=getattr(spec, "precedence", None),
        section=section if isinstance(section, str) else None,
    )
