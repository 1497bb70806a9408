"""Which raw tools belong to task drivers (ORD-1, ORD-2)."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from moorage.contract import GatewayContext, ServerClaim, ServerConfig, TaskBinding, TaskDriverRegistry

logger = logging.getLogger(__name__)


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
    for name, driver in sorted(registry.drivers().items()):
        try:
            claim = driver.claim(server, raw_names)
            if not isinstance(claim, ServerClaim):
                raise TypeError(f"claim answered with {type(claim).__name__}, not a ServerClaim")
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            logger.exception("task driver %r cannot judge server %r", name, server.name)
            claims.errors.append(f"task driver {name!r} failed: {type(error).__name__}")
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
