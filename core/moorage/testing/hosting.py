"""A plugin host with just the plugin under test."""

import importlib
from types import ModuleType

from moorage.host import Candidate, PluginHost, PluginLoadFailed, load_plugins


def host_with(*plugins: "str | ModuleType | object", strict: bool = True) -> PluginHost:
    """Load these plugins and nothing else that is installed; each a module's name, a module or an object.

    Raises `PluginLoadFailed` that says what is wrong with one, unless ``strict`` is false.
    """
    host = load_plugins(candidates=[_candidate(plugin) for plugin in plugins], check=False)
    amiss = [report for report in host.reports if not report.loaded]
    if strict and amiss:
        raise PluginLoadFailed(amiss, why="the plugin under test cannot be loaded")
    return host


def _candidate(plugin: "str | ModuleType | object") -> Candidate:
    if isinstance(plugin, str):
        module, _, attribute = plugin.partition(":")

        def load() -> object:
            found: object = importlib.import_module(module)
            for part in attribute.split(".") if attribute else ():
                found = getattr(found, part)
            return found

        name = attribute or module.removesuffix(".plugin")
        return Candidate(name.rpartition(".")[2], "(under test)", "", plugin, load, module)
    name = plugin.__name__ if isinstance(plugin, ModuleType) else type(plugin).__name__
    short = name.removesuffix(".plugin").rpartition(".")[2]
    return Candidate(short, "(under test)", "", name, lambda: plugin)
