"""The plugin host: discovers, loads, checks and orders plugins; the only user of pluggy's manager (PLUG)."""

from moorage.host.discovery import Candidate, announced_names, discover
from moorage.host.known import missing_distribution
from moorage.host.load import CORE_COMMANDS, load_plugins
from moorage.host.registry import Contribution, PluginHost, PluginLoadFailed
from moorage.host.reports import ContributionInfo, LoadReport, PluginState
from moorage.host.selection import store_for, why_missing

__all__ = [
    "CORE_COMMANDS",
    "Candidate",
    "Contribution",
    "ContributionInfo",
    "LoadReport",
    "PluginHost",
    "PluginLoadFailed",
    "PluginState",
    "announced_names",
    "discover",
    "load_plugins",
    "missing_distribution",
    "store_for",
    "why_missing",
]
