"""`load_plugins`: from installed distributions to a `PluginHost` (PLUG-1, PLUG-3, PLUG-4)."""

import contextlib
import logging
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace

from moorage.host.conflicts import claim_conflicts, name_conflicts
from moorage.host.discovery import Candidate, discover, discover_files
from moorage.host.loading import LOAD_TIMEOUT_SECONDS, Loaded, Loader, unloaded
from moorage.host.registry import Contribution, PluginHost
from moorage.host.reports import LoadReport, PluginState
from moorage.settings import PluginSettings

CORE_COMMANDS = frozenset({"plugins", "config", "doctor", "help", "install", "uninstall"})

_log = logging.getLogger("moorage.plugins")


def load_plugins(
    settings: PluginSettings | None = None,
    *,
    candidates: Iterable[Candidate] | None = None,
    check: bool = True,
    timeout_seconds: float = LOAD_TIMEOUT_SECONDS,
) -> PluginHost:
    """Load every plugin that is installed or lies in the plugins folder, and is not blocked.

    A plugin that cannot be loaded is reported, and none of its hooks stays registered. ``check`` false
    only makes the reports; otherwise they are logged, and `PluginLoadFailed` is raised where a start must
    fail: in strict mode, and where a single-file plugin cannot be loaded (PLUG-9).
    ``candidates`` replaces what is installed, for tests.
    """
    settings = settings or PluginSettings()
    installed = discover() if candidates is None else tuple(candidates)
    local, broken = _local_files(settings)
    # What a plugin prints while it is imported must not end up in the output of `--json`.
    with contextlib.redirect_stdout(sys.stderr), Loader(timeout_seconds=timeout_seconds) as loader:
        loaded = _load_all(loader, [*installed, *local], settings.block)
    host = PluginHost(
        [*(item.report for item in loaded), *broken],
        [(hook, Contribution(spec, item.report.name)) for item in loaded for hook, spec in item.specs],
    )
    if check:
        _tell(host, settings.block)
        host.ensure_startable(strict=settings.strict)
    return host


def _load_all(loader: Loader, candidates: Sequence[Candidate], blocked: Sequence[str]) -> list[Loaded]:
    ordered = sorted(candidates, key=lambda c: (c.name, c.distribution, c.entry_point))
    ambiguous = name_conflicts(ordered, blocked)
    loaded = [
        unloaded(candidate, PluginState.REFUSED, ambiguous[candidate.name])
        if candidate.name in ambiguous
        else loader.load(candidate, blocked=blocked)
        for candidate in ordered
    ]
    conflicts = claim_conflicts([item for item in loaded if item.report.loaded], CORE_COMMANDS)
    return [_refused(loader, item, conflicts.get(item.report.name)) for item in loaded]


def _refused(loader: Loader, item: Loaded, reason: str | None) -> Loaded:
    if reason is None or not item.report.loaded:
        return item
    loader.forget(item)
    return Loaded(replace(item.report, state=PluginState.REFUSED, error=reason, contributions=()))


def _local_files(settings: PluginSettings) -> tuple[tuple[Candidate, ...], tuple[LoadReport, ...]]:
    directory = settings.directory
    if directory is None:
        return (), ()
    try:
        return discover_files(directory), ()
    except OSError as error:
        reason = f"the plugins folder cannot be read: {error.strerror or type(error).__name__}"
        return (), (
            LoadReport(
                name=directory.name,
                distribution="(folder)",
                version="",
                entry_point=str(directory),
                state=PluginState.FAILED,
                error=reason,
                requested=True,
            ),
        )


def _tell(host: PluginHost, blocked: Sequence[str]) -> None:
    for report in host.reports:
        if report.state in (PluginState.FAILED, PluginState.REFUSED):
            _log.warning(
                "plugin %r of %s (%s) is %s: %s",
                report.name,
                report.source,
                report.entry_point,
                report.state,
                report.error,
            )
    for name in sorted(set(blocked) - {report.name for report in host.reports}):
        _log.warning("plugins.block names %r, and no such plugin is installed", name)
    _log.info("%s", host.summary())
