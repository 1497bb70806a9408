"""What of a task-enabled server cannot change without a restart (TASK-18, ADMIN-5)."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from moorage.config.sections import SectionSet
from moorage.contract import ExtensionsSnapshot, SectionLevel, ServerConfig

# What a server's background calls depend on. Its visible tool names, unknown keys and `enabled` are not
# among it: they say what agents see, and disabling is always possible.
_RUNTIME_FIELDS = {
    "transport": "type",
    "command": "command",
    "args": "args",
    "env": "env",
    "cwd": "cwd",
    "url": "url",
    "headers": "headers",
    "session_init_timeout_seconds": "session_init_timeout",
    "tool_call_timeout_seconds": "tool_call_timeout",
}
_ABSENT = object()


def restart_only_changes(before: ServerConfig, after: ServerConfig, sections: SectionSet) -> tuple[str, ...]:
    """Dotted keys of a server that differ and are not presentation only, whether or not it has tasks."""
    changes = [
        path
        for field, key in _RUNTIME_FIELDS.items()
        for path in _differences(getattr(before, field), getattr(after, field), key)
    ]
    changes += _section_changes(before.sections, after.sections, sections, "server", "")
    for tool in sorted(before.tool_sections.keys() | after.tool_sections.keys()):
        old, new = before.tool_sections.get(tool, {}), after.tool_sections.get(tool, {})
        changes += _section_changes(old, new, sections, "tool", f"tools.{tool}.")
    return tuple(changes)


def has_tasks(server: ServerConfig | None, task_sections: frozenset[str]) -> bool:
    """Whether a section of a task driver turns tasks on for the server."""
    return server is not None and not task_sections.isdisjoint(server.sections)


def restart_required(
    startup: ExtensionsSnapshot,
    servers: Mapping[str, ServerConfig],
    sections: SectionSet,
    task_sections: frozenset[str],
    *,
    interceptors: tuple[str, ...] | None = None,
    task_servers: frozenset[str] = frozenset(),
) -> dict[str, tuple[str, ...]]:
    """Task-enabled servers that differ from the start-up snapshot in more than presentation: name → keys.

    ``task_sections``: the sections that task drivers are turned on by. ``task_servers``: servers that have
    tasks without such a section. ``interceptors``: the present list, compared where given; a change of it
    concerns every task-enabled server. A server that is disabled or gone is never among them; one that is
    new, or was refused at start, is, with the section that needs the restart.
    """
    result: dict[str, tuple[str, ...]] = {}
    for name, after in servers.items():
        before = startup.servers.get(name)
        tasked = name in task_servers or has_tasks(before, task_sections) or has_tasks(after, task_sections)
        if not tasked or not after.enabled:
            continue
        if before is None:
            changes = tuple(sorted(task_sections & after.sections.keys())) or ("type",)
        else:
            changes = restart_only_changes(before, after, sections)
        if interceptors is not None and interceptors != startup.interceptors:
            changes = (*changes, "mcpInterceptors")
        if changes:
            result[name] = changes
    return result


def _section_changes(
    before: Mapping[str, Any], after: Mapping[str, Any], sections: SectionSet, level: SectionLevel, at: str
) -> Iterator[str]:
    for name in sorted(before.keys() | after.keys()):
        section = sections.get(name, level)
        patterns = tuple(tuple(p.split(".")) for p in section.presentation_paths) if section else ()
        if ("*",) in patterns:
            continue
        old, new = _runtime_part(before.get(name), patterns), _runtime_part(after.get(name), patterns)
        yield from _differences(old, new, f"{at}{name}")


def _runtime_part(value: Any, patterns: tuple[tuple[str, ...], ...]) -> Any:
    """The block as plain values without its presentation paths; a list's items are transparent to paths."""
    if is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    elif hasattr(value, "model_dump"):
        value = value.model_dump()
    if isinstance(value, Mapping):
        result = {}
        for key, item in value.items():
            rest = tuple(p[1:] for p in patterns if p and p[0] in (key, "*"))
            if () not in rest:
                result[key] = _runtime_part(item, rest)
        return result
    if isinstance(value, list | tuple):
        return [_runtime_part(item, patterns) for item in value]
    return value


def _differences(before: Any, after: Any, path: str) -> Iterator[str]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in [*before, *(key for key in after if key not in before)]:
            yield from _differences(before.get(key, _ABSENT), after.get(key, _ABSENT), f"{path}.{key}")
    elif before != after:
        yield path
