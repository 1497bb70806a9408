"""Which raw tools belong to task drivers (ORD-1, ORD-2)."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from moorage.contract import GatewayContext, PluginError, ServerConfig, TaskBinding, TaskDriverRegistry


@dataclass(slots=True)
class Claims:
    """What all drivers together take of one server."""

    submit: dict[str, TaskBinding] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    errors: list[str] = field(default_factory=list)


def claims_of(gateway: GatewayContext, server: ServerConfig, raw_names: Sequence[str]) -> Claims:
    """Ask every installed driver. One that fails costs its own tools only, and says so."""
    claims = Claims()
    if not gateway.has(TaskDriverRegistry):
        return claims
    registry: TaskDriverRegistry = gateway.service(TaskDriverRegistry)
    for name in sorted(registry.drivers()):
        try:
            claim = registry.claim(name, server, raw_names)
        except PluginError as error:
            claims.errors.append(str(error))
            continue
        claims.errors += claim.errors
        claims.hidden |= claim.hidden
        for raw, binding in claim.submit.items():
            taken = claims.submit.setdefault(raw, binding)
            if taken is not binding:
                claims.hidden.add(raw)
                claims.errors.append(
                    f"server {server.name!r}: tool {raw!r} is claimed by the task drivers"
                    f" {taken.driver!r} and {binding.driver!r}, and withheld"
                )
    return claims
