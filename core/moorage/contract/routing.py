"""Routing hints: soft, prompt text only (ROUTE)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from moorage.contract.servers import ServerConfig

if TYPE_CHECKING:
    from moorage.contract.gateway import GatewayContext


@dataclass(frozen=True, slots=True)
class RoutingHint:
    """Effective routing of one tool. ``priority`` is 0 to 100."""

    mode: Literal["off", "prefer"] = "off"
    priority: int = 0
    keywords: tuple[str, ...] = ()


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
