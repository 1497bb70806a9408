"""Visible tool names: safe, unique, stable, each mapped to its exact raw name (TOOL-3)."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from moorage_drivers.mcp.text import neutral

MAX_CHARACTERS = 64
RESERVED = frozenset({"tool_search", "list_tasks", "cancel_task", "respond_to_task", "runtime"})
"""Names of the gateway's own tools and of injected arguments."""
INJECTED_ARGUMENTS = frozenset({"runtime", "config", "run_manager", "callbacks", "self"})
"""Arguments that the agent library would take for its own."""

_VISIBLE = re.compile(r"[A-Za-z0-9_-]{1,64}")
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
_FORGING = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069<>]")

ToolKey = tuple[str, str]
"""Server name and raw tool name."""


@dataclass(slots=True)
class Names:
    """Visible name by tool, and what had to be said about it, by server."""

    visible: dict[ToolKey, str] = field(default_factory=dict)
    warnings: dict[str, list[str]] = field(default_factory=dict)

    def warn(self, server: str, text: str) -> None:
        self.warnings.setdefault(server, []).append(text)


def visible_names(tools: Iterable[tuple[ToolKey, bool]]) -> Names:
    """``tools``: each with whether its server's name is put before it. Refused ones get no name."""
    names = Names()
    wanted: dict[ToolKey, str] = {}
    for key, prefixed in tools:
        server, raw = key
        if _FORGING.search(raw):
            names.warn(server, f"tool {neutral(raw, 100)!r} is refused: its name could forge a prompt")
            continue
        wanted[key] = f"{server}_{raw}" if prefixed else raw
    uses = Counter(wanted.values())
    for key, name in wanted.items():
        server, raw = key
        if uses[name] == 1 and _VISIBLE.fullmatch(name) and name not in RESERVED:
            names.visible[key] = name
            continue
        alias = names.visible[key] = _alias(server, raw, name)
        if uses[name] > 1:
            others = sorted(other for other, _ in (k for k, n in wanted.items() if n == name and k != key))
            why = f"servers {', '.join(map(repr, others))} have the same name"
        elif name in RESERVED:
            why = "the name belongs to the gateway"
        else:
            why = "the name does not fit [A-Za-z0-9_-]{1,64}"
        names.warn(server, f"tool {neutral(raw, 100)!r} is shown as {alias!r}: {why}")
    return names


def _alias(server: str, raw: str, name: str) -> str:
    digest = hashlib.sha256(f"{len(server)}:{server}{raw}".encode("utf-8", "replace")).hexdigest()[:8]
    stem = _UNSAFE.sub("_", name).strip("_") or "tool"
    return f"{stem[: MAX_CHARACTERS - 9]}_{digest}"


def argument_aliases(properties: Mapping[str, object]) -> dict[str, str]:
    """Visible argument name → raw one, for arguments that would be swallowed on their way."""
    aliases: dict[str, str] = {}
    for raw in sorted(INJECTED_ARGUMENTS & properties.keys()):
        alias = f"{raw}_"
        while alias in properties or alias in aliases:
            alias += "_"
        aliases[alias] = raw
    return aliases
