"""Effective hints from a server's and a tool's blocks."""

from typing import Any

from moorage.contract import RoutingHint, ServerConfig
from moorage_plugins.routing.model import Routing

MAX_KEYWORDS = 32
MAX_KEYWORD_CHARACTERS = 64


def clamped(priority: int) -> int:
    """``priority`` within 0 to 100."""
    return max(0, min(100, priority))


class ConfiguredHints:
    """The operator's hints: unset fields of the tool's block inherit the server's (ROUTE-1)."""

    def hint(self, server: ServerConfig, raw_name: str) -> RoutingHint | None:
        """None where neither the server nor the tool has a block."""
        blocks = [
            block
            for block in (
                server.tool_sections.get(raw_name, {}).get("routing"),
                server.sections.get("routing"),
            )
            if isinstance(block, Routing)
        ]
        if not blocks:
            return None
        return RoutingHint(
            mode=_first(blocks, "mode", "off"),
            priority=clamped(_first(blocks, "priority", 0)),
            keywords=_tidy(_first(blocks, "keywords", [])),
        )


def _first(blocks: list[Routing], field: str, default: Any) -> Any:
    return next((value for b in blocks if (value := getattr(b, field)) is not None), default)


def _tidy(keywords: list[str]) -> tuple[str, ...]:
    """Without blanks and repetitions, bounded."""
    kept = dict.fromkeys(" ".join(k.split())[:MAX_KEYWORD_CHARACTERS].strip() for k in keywords)
    return tuple(k for k in kept if k)[:MAX_KEYWORDS]
