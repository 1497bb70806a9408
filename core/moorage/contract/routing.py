"""Routing hints: soft, prompt text only (ROUTE)."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from moorage.contract.servers import ServerConfig
from moorage.contract.tools import GatewayTool

if TYPE_CHECKING:
    from moorage.contract.gateway import GatewayContext

ROUTING_METADATA = "moorage_routing"
"""Where a tool's metadata holds its effective `RoutingHint`, as a mapping (ROUTE-2)."""

_VISIBLE_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NOT_IN_A_KEYWORD = re.compile(r"[^\w .+/&'-]+")  # what could open or close a block, a list, a heading
_MAX_KEYWORDS = 32
_MAX_KEYWORD_CHARACTERS = 64


@dataclass(frozen=True, slots=True)
class RoutingHint:
    """Effective routing of one tool. ``priority`` is 0 to 100."""

    mode: Literal["off", "prefer"] = "off"
    priority: int = 0
    keywords: tuple[str, ...] = ()

    def as_metadata(self) -> Mapping[str, Any]:
        """What `ROUTING_METADATA` holds."""
        return {"mode": self.mode, "priority": self.priority, "keywords": list(self.keywords)}


class RoutingHintProvider(Protocol):
    """Resolves hints while server and raw name are both known (ROUTE-2). No I/O."""

    def hint(self, server: ServerConfig, raw_name: str) -> RoutingHint | None:
        """None where this provider has no opinion."""
        ...


@dataclass(frozen=True, slots=True)
class RoutingHintSpec:
    """Contributes a provider; the highest precedence with an opinion wins."""

    name: str
    precedence: int
    build: "Callable[[GatewayContext], RoutingHintProvider]"


def routing_prompt(tools: Iterable[GatewayTool], *, deferred: Collection[str] = ()) -> str:
    """The section of a system prompt that lists preferred tools; empty where none is preferred (ROUTE-3).

    ``deferred``: visible names whose schemas are withheld; the text says to find these with ``tool_search``
    first. Keywords are reduced to words, so that they cannot forge prompt structure.
    """
    preferred = [entry for tool in tools if (entry := _preference(tool)) is not None]
    lines = []
    for _, name, keywords in sorted(preferred):
        first = " (find it with tool_search first)" if name in deferred else ""
        lines.append(f"- {name}{first}: {', '.join(keywords)}")
    if not lines:
        return ""
    head = "Preferred tools, as a hint: where a request concerns one of the topics, consider the tool first."
    return "\n".join([head, *lines])


def _preference(tool: GatewayTool) -> tuple[int, str, list[str]] | None:
    hint = tool.metadata.get(ROUTING_METADATA)
    if not isinstance(hint, Mapping) or hint.get("mode") != "prefer":
        return None
    words = (_NOT_IN_A_KEYWORD.sub(" ", k) for k in hint.get("keywords") or () if isinstance(k, str))
    tidy = dict.fromkeys(" ".join(k.split())[:_MAX_KEYWORD_CHARACTERS].strip() for k in words)
    keywords = [k for k in tidy if k.strip(" .+/&'-_")][:_MAX_KEYWORDS]
    if not keywords or not _VISIBLE_NAME.fullmatch(tool.name):
        return None
    priority = hint.get("priority")
    return (-priority if isinstance(priority, int) else 0, tool.name, keywords)
