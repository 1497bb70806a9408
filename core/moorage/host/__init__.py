"""The plugin host: discovery, loading, reports, the registry of contributions (PLUG)."""

from moorage.host.loading import PluginLoadFailed, load_plugins
from moorage.host.missing import missing_distribution
from moorage.host.registry import Contribution, LoadReport, PluginHost

__all__ = [
    "Contribution",
    "LoadReport",
    "PluginHost",
    "PluginLoadFailed",
    "load_plugins",
    "missing_distribution",
]
