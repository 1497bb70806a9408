"""Hints from the tools' own names: whatever searches is preferred a little."""

import sys
from collections.abc import Iterable

from moorage.contract import (
    GatewayContext,
    RoutingHint,
    RoutingHintProvider,
    RoutingHintSpec,
    ServerConfig,
    hookimpl,
)


class ByName:
    def hint(self, server: ServerConfig, raw_name: str) -> RoutingHint | None:
        if "search" not in raw_name:
            return None
        return RoutingHint(mode="prefer", priority=10, keywords=(server.name, "search"))


def build(context: GatewayContext) -> RoutingHintProvider:
    return ByName()


@hookimpl
def moorage_routing_hints() -> Iterable[RoutingHintSpec]:
    # Below the precedence of `routing`, so that the operator's config wins.
    return (RoutingHintSpec("by_name", 10, build),)


if __name__ == "__main__":
    from pathlib import Path

    from moorage.testing import gateway_context, host_with, server_config

    (one,) = host_with(sys.modules[__name__]).routing_hints()
    hints = one.spec.build(gateway_context(Path("unused")))
    print(hints.hint(server_config("wiki", transport="http"), "search_pages").as_metadata())
