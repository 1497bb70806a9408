"""Servers with durable tasks stay as they were at the start (TASK-18)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from moorage.config import ExtensionsFile, restart_required
from moorage.contract import ExtensionsSnapshot


@dataclass(frozen=True, slots=True)
class _Seen:
    file: ExtensionsSnapshot
    frozen: ExtensionsSnapshot
    drift: Mapping[str, tuple[str, ...]]


class FrozenExtensions:
    """The `ExtensionsSource` of a gateway: the file, with task-enabled servers that have drifted from the
    start in more than presentation as they were then.

    So discovery never diverges from the background calls of tasks under way, whatever is edited. That such a
    server is disabled or removed counts at once.
    """

    def __init__(self, file: ExtensionsFile, task_sections: frozenset[str]) -> None:
        self._file = file
        self.task_sections = task_sections
        self.startup = file.current()
        self._seen = _Seen(self.startup, self.startup, {})

    def current(self) -> ExtensionsSnapshot:
        """See `ExtensionsSource.current`."""
        return self._look().frozen

    def refusal(self, server: str) -> str | None:
        """Why no task can be submitted to this server now; None where one can."""
        seen = self._look()
        entry = seen.frozen.servers.get(server)
        if entry is None or not entry.enabled:
            return f"server {server!r} is disabled or no longer configured"
        if (keys := seen.drift.get(server)) is not None:
            return drift_message({server: keys})
        return None

    def _look(self) -> _Seen:
        snapshot, seen = self._file.current(), self._seen
        if snapshot is not seen.file:
            self._seen = seen = self._freeze(snapshot)
        return seen

    def _freeze(self, snapshot: ExtensionsSnapshot) -> _Seen:
        drift = restart_required(
            self.startup,
            snapshot.servers,
            self._file.sections,
            self.task_sections,
            interceptors=snapshot.interceptors,
        )
        kept = {name: self.startup.servers[name] for name in drift if name in self.startup.servers}
        if not kept:
            return _Seen(snapshot, snapshot, drift)
        servers = MappingProxyType({**snapshot.servers, **kept})
        return _Seen(snapshot, replace(snapshot, servers=servers), drift)


def drift_message(drift: Mapping[str, tuple[str, ...]]) -> str:
    """What has changed, and what to do."""
    servers = "; ".join(f"server {name!r} ({', '.join(keys)})" for name, keys in sorted(drift.items()))
    return (
        f"changed since the gateway started, and durable tasks depend on it: {servers}. Restart the gateway "
        "to use the change, or take it back; tasks under way finish on what was configured at the start"
    )
