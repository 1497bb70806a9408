"""Contributes the section and the provider; nothing else is imported before they are used (PLUG-8)."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from moorage.contract import (
    ConfigSection,
    GatewayContext,
    RoutingHintProvider,
    RoutingHintSpec,
    hookimpl,
)

if TYPE_CHECKING:
    from moorage_plugins.routing.model import Routing

MOORAGE_API = ">=0.1"
SECTION = "routing"
PRECEDENCE = 10_000
"""Above other plugins' hints: the operator's word wins (ROUTE-2)."""


def _load_model() -> "type[Routing]":
    from moorage_plugins.routing.model import Routing

    return Routing


def _build(context: GatewayContext) -> RoutingHintProvider:
    from moorage_plugins.routing.provider import ConfiguredHints

    return ConfiguredHints()


def _check(server: str, block: Any, entry: Mapping[str, Any]) -> tuple[str, ...]:
    from moorage_plugins.routing.provider import clamped

    if block.priority is None or clamped(block.priority) == block.priority:
        return ()
    used = clamped(block.priority)
    return (f"server {server!r}: {SECTION}.priority {block.priority} is not within 0 to 100: {used} is used",)


@hookimpl
def moorage_config_sections() -> Iterable[ConfigSection]:
    return (
        ConfigSection(
            SECTION,
            _load_model,
            levels=frozenset({"server", "tool"}),
            presentation_paths=("*",),  # prompt text only
            check=_check,
        ),
    )


@hookimpl
def moorage_routing_hints() -> Iterable[RoutingHintSpec]:
    return (RoutingHintSpec(SECTION, PRECEDENCE, _build),)
