"""What a change of the extensions config would do; nothing here reads or writes a file (ADMIN)."""

import copy
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from moorage.config.document import Document, dotted
from moorage.config.drift import has_tasks, restart_only_changes, restart_required
from moorage.config.entries import enabled_of, transport_of
from moorage.config.errors import ConfigRejected
from moorage.config.faults import kind_of
from moorage.config.loading import Loaded
from moorage.config.merging import MISSING, merge, same
from moorage.config.sections import SectionSet
from moorage.config.showing import masked
from moorage.contract import ConfigFault, ExtensionsSnapshot, LaunchRequest, NotFound, ServerConfig

_LAUNCH_KEYS = ("command", "args", "env", "cwd", "url")

Load = Callable[[dict[str, Any], Document], Loaded]


@dataclass(frozen=True, slots=True)
class ConfigPlan:
    """A change that is acceptable as far as the configuration itself goes.

    ``launches``: what launch validators must judge before it is written (LAUNCH-1). ``changed``: server →
    dotted keys that differ; never a value. ``faults``: what is worth a warning, and faults of servers that
    this change does not touch. ``servers``: the healthy servers as they would be.
    """

    before: Mapping[str, Any] = field(repr=False)
    after: Mapping[str, Any] = field(repr=False)
    servers: Mapping[str, ServerConfig]
    servers_before: Mapping[str, ServerConfig]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: Mapping[str, tuple[str, ...]]
    launches: tuple[LaunchRequest, ...]
    faults: tuple[ConfigFault, ...]
    sections: SectionSet = field(repr=False)

    @property
    def changes_anything(self) -> bool:
        return bool(self.added or self.removed or self.changed)

    def restart_required(
        self,
        startup: ExtensionsSnapshot,
        task_sections: frozenset[str],
        *,
        task_servers: frozenset[str] = frozenset(),
    ) -> dict[str, tuple[str, ...]]:
        """Servers for which this change needs a restart, with the keys: to be answered with 409 (ADMIN-5).

        Counts only what the change itself does to a server that was running at start: an edit of the file
        that is not in force yet, a new server, and the repair of a refused one are nobody's conflict here.
        """
        drifted = restart_required(
            startup, self.servers, self.sections, task_sections, task_servers=task_servers
        )
        result: dict[str, tuple[str, ...]] = {}
        for name in drifted.keys() & self.changed.keys() & startup.servers.keys():
            before, after = self.servers_before.get(name), self.servers[name]
            touched = drifted[name]
            if before is not None:
                now = restart_only_changes(before, after, self.sections)
                touched = tuple(key for key in touched if key in now)
            if touched:
                result[name] = touched
        return dict(sorted(result.items()))

    def new_task_servers(self, startup: ExtensionsSnapshot, task_sections: frozenset[str]) -> tuple[str, ...]:
        """Servers whose durable tasks will work after a restart only."""
        fresh = (name for name in self.servers if name not in startup.servers and name in self._touched())
        return tuple(sorted(name for name in fresh if has_tasks(self.servers[name], task_sections)))

    def _touched(self) -> frozenset[str]:
        return frozenset(self.added) | self.changed.keys()


def etag_of(raw: Mapping[str, Any], sections: SectionSet) -> str:
    """A strong ETag, in quotes, of what a GET shows of this content (ADMIN-6).

    It is made of the masked view, so that nobody can try out secrets against it. A change of a masked
    secret alone keeps it; a PUT that was based on the older view then keeps the newer secret.
    """
    text = json.dumps(masked(raw, sections), sort_keys=True, ensure_ascii=True)
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


def plan_replace(
    submitted: Mapping[str, Any], stored: Mapping[str, Any], sections: SectionSet, load: Load
) -> ConfigPlan:
    """A PUT of all servers (ADMIN-2). Neither argument is changed.

    Servers that stay as they are stored are not judged again: what is in the file is the operator's.
    Raises `ConfigRejected`.
    """
    after = merge(submitted, stored, sections)
    return _plan(stored, after, sections, load)


def plan_enabled(
    name: str, enabled: bool, stored: Mapping[str, Any], sections: SectionSet, load: Load
) -> ConfigPlan:
    """A PATCH of one server's ``enabled`` (ADMIN-3). Enabling validates that server; disabling always works.

    Raises `NotFound`, and `ConfigRejected` where a server cannot be enabled.
    """
    servers = stored.get("mcpServers") or {}
    if name not in servers:
        raise NotFound(f"there is no server {name!r} in the extensions config")
    after = copy.deepcopy(dict(stored))
    entry = after["mcpServers"][name]
    if not isinstance(entry, dict):
        if enabled:
            message = f"cannot be enabled: it must be an object, not {kind_of(entry)}"
            raise ConfigRejected([ConfigFault(dotted(("mcpServers", name)), message, name)])
    elif enabled_of(entry) is not enabled or not isinstance(entry.get("enabled", True), bool):
        entry["enabled"] = enabled
    return _plan(stored, after, sections, load, judge=enabled)


def _plan(
    before: Mapping[str, Any], after: dict[str, Any], sections: SectionSet, load: Load, *, judge: bool = True
) -> ConfigPlan:
    old, new = before.get("mcpServers") or {}, after.get("mcpServers") or {}
    changed = {
        name: tuple(dotted(path) for path in _changes(old[name], new[name], ()))
        for name in new
        if name in old and not same(old[name], new[name])
    }
    added = tuple(name for name in new if name not in old)
    loaded = load(after, Document(after))
    judged = {*added, *changed} if judge else set()
    if fatal := [fault for fault in loaded.faults if fault.fatal and fault.server in judged]:
        raise ConfigRejected(fatal)
    touched = [name for name in new if name in judged and isinstance(new[name], dict)]
    return ConfigPlan(
        before=before,
        after=after,
        servers=loaded.servers,
        servers_before=load(dict(before), Document(before)).servers,
        added=added,
        removed=tuple(name for name in old if name not in new),
        changed=changed,
        launches=tuple(
            launch_request(name, new[name])
            for name in touched
            if _launches_anew(old.get(name, MISSING), new[name])
        ),
        faults=loaded.faults,
        sections=sections,
    )


def launch_request(name: str, entry: Mapping[str, Any]) -> LaunchRequest:
    """What a healthy entry would start, as written (LAUNCH-1)."""
    return LaunchRequest(
        server=name,
        transport=transport_of(entry) or "stdio",
        command=entry.get("command"),
        args=tuple(entry.get("args") or ()),
        env=dict(entry.get("env") or {}),
        cwd=entry.get("cwd"),
        url=entry.get("url"),
    )


def _launches_anew(old: Any, new: Mapping[str, Any]) -> bool:
    if not isinstance(old, dict):
        return True
    if enabled_of(new) and not enabled_of(old):
        return True
    if transport_of(old) != transport_of(new):
        return True
    return any(not same(old.get(key), new.get(key)) for key in _LAUNCH_KEYS)


def _changes(old: Any, new: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            yield from _changes(old.get(key, MISSING), new.get(key, MISSING), (*path, key))
    elif not same(old, new):
        yield path
