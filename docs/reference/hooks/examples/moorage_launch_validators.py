"""Servers that come in over HTTP must be named after a team."""

import sys
from collections.abc import Iterable

from moorage.contract import (
    GatewayContext,
    LaunchRefused,
    LaunchRequest,
    LaunchValidator,
    LaunchValidatorSpec,
    hookimpl,
)

TEAMS = ("docs-", "ops-")


class Teams:
    def validate(self, request: LaunchRequest) -> None:
        if not request.server.startswith(TEAMS):
            raise LaunchRefused(f"server {request.server!r}: its name must begin with {' or '.join(TEAMS)}")


def build(context: GatewayContext) -> LaunchValidator:
    return Teams()


@hookimpl
def moorage_launch_validators() -> Iterable[LaunchValidatorSpec]:
    return (LaunchValidatorSpec("teams", build),)


if __name__ == "__main__":
    from pathlib import Path

    from moorage.testing import gateway_context, host_with

    (one,) = host_with(sys.modules[__name__]).launch_validators()
    validator = one.spec.build(gateway_context(Path("unused")))
    validator.validate(LaunchRequest("docs-wiki", "http", url="https://wiki.example/mcp"))
    try:
        validator.validate(LaunchRequest("wiki", "http", url="https://wiki.example/mcp"))
    except LaunchRefused as refused:
        print(refused)
