"""Loading plugins one at a time; none of them can take the host down (PLUG-4)."""

import inspect
import logging
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import importlib_metadata
import pluggy

from moorage.contract import hookspecs
from moorage.contract.errors import MoorageError
from moorage.contract.version import PLUGIN_GROUP, PROJECT
from moorage.host.registry import Contribution, LoadReport, PluginHost
from moorage.settings import PluginSettings

log = logging.getLogger(__name__)
_UNIQUE = ("moorage_task_drivers", "moorage_config_sections", "moorage_stores", "moorage_assistants")


class PluginLoadFailed(MoorageError):
    """Strict mode: a plugin could not be loaded (PLUG-4)."""


def load_plugins(settings: PluginSettings) -> PluginHost:
    """Load every candidate of the group ``moorage.plugins``.

    Never raises for a plugin, except `PluginLoadFailed` in strict mode.
    """
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(hookspecs)
    candidates = sorted(
        importlib_metadata.entry_points(group=PLUGIN_GROUP), key=lambda point: (point.name, point.value)
    )
    counts: dict[str, list[str]] = defaultdict(list)
    for point in candidates:
        counts[point.name].append(_distribution(point)[0])
    reports: list[LoadReport] = []
    found: dict[str, list[Contribution[Any]]] = {}
    for point in candidates:
        if len(counts[point.name]) > 1:
            owners = ", ".join(sorted(counts[point.name]))
            reports.append(_report(point, "refused", f"several plugins have this name: {owners}"))
        elif point.name in settings.block:
            reports.append(_report(point, "blocked", "blocked by the settings"))
        else:
            reports.append(_load(point, manager, found))
    reports = _refuse_doubles(reports, found)
    bad = [report for report in reports if report.state in ("failed", "refused")]
    loaded = [report.name for report in reports if report.state == "loaded"]
    log.info("loaded %d of %d plugins: %s", len(loaded), len(reports), ", ".join(loaded))
    for report in bad:
        log.warning("plugin %r (%s) %s: %s", report.name, report.distribution, report.state, report.error)
    if bad and settings.strict:
        raise PluginLoadFailed("; ".join(f"plugin {one.name!r}: {one.error}" for one in bad))
    by_hook: dict[str, list[Contribution[Any]]] = defaultdict(list)
    for name in loaded:
        for key, one in ((key, one) for key, many in found.items() for one in many if one.plugin == name):
            by_hook[key].append(one)
    return PluginHost(reports=tuple(reports), contributions=by_hook)


def _distribution(point: Any) -> tuple[str, str]:
    return (point.dist.name, point.dist.version) if point.dist is not None else ("unknown", "unknown")


def _report(point: Any, state: Any, error: str | None = None, hooks: Sequence[str] = ()) -> LoadReport:
    distribution, version = _distribution(point)
    return LoadReport(
        name=point.name,
        distribution=distribution,
        version=version,
        entry_point=point.value,
        state=state,
        error=error,
        hooks=tuple(hooks),
    )


def _load(point: Any, manager: pluggy.PluginManager, found: dict[str, list[Contribution[Any]]]) -> LoadReport:
    try:
        plugin = point.load()
        hooks = _hooks(plugin, manager)
        collected = {
            hook: [Contribution(spec, point.name) for spec in call()] for hook, call in hooks.items()
        }
    except BaseException as error:  # an import may call sys.exit (PLUG-4)
        if isinstance(error, KeyboardInterrupt):
            raise
        return _report(point, "failed", f"{type(error).__name__}: {error}")
    for hook, many in collected.items():
        found.setdefault(hook, []).extend(many)
    return _report(point, "loaded", hooks=sorted(hooks))


def _hooks(plugin: Any, manager: pluggy.PluginManager) -> dict[str, Any]:
    """The plugin's implementations, checked; raises `TypeError` for one that the host cannot call."""
    hooks: dict[str, Any] = {}
    for name in dir(plugin):
        options = manager.parse_hookimpl_opts(plugin, name)
        if options is None:
            continue
        hook = options["specname"] or name
        function = getattr(plugin, name)
        if not hasattr(hookspecs, hook):
            raise TypeError(f"implements the unknown hook {hook!r}")
        if options["wrapper"] or options["hookwrapper"]:
            raise TypeError(f"{hook} is a wrapper, which hooks of Moorage do not have")
        if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
            raise TypeError(f"{hook} must be a plain function that returns an iterable")
        if inspect.signature(function).parameters:
            raise TypeError(f"{hook} takes no parameter, it has {inspect.signature(function)}")
        hooks[hook] = function
    return hooks


def _refuse_doubles(reports: list[LoadReport], found: dict[str, list[Contribution[Any]]]) -> list[LoadReport]:
    """Two contributions of one name are both refused, with their plugins (PLUG-3)."""
    distributions = {report.name: report.distribution for report in reports}
    reasons: dict[str, str] = {}
    for hook in _UNIQUE:
        owners: dict[str, set[str]] = defaultdict(set)
        for one in found.get(hook, ()):
            owners[one.spec.name].add(one.plugin)
        for name, plugins in sorted(owners.items()):
            if len(plugins) > 1:
                who = " and ".join(f"{plugin!r} ({distributions[plugin]})" for plugin in sorted(plugins))
                reasons |= dict.fromkeys(plugins, f"{hook}: {name!r} is contributed by {who}")
    return [
        LoadReport(
            name=one.name,
            distribution=one.distribution,
            version=one.version,
            entry_point=one.entry_point,
            state="refused",
            error=reasons[one.name],
        )
        if one.name in reasons and one.state == "loaded"
        else one
        for one in reports
    ]
