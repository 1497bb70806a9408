"""Contributes the launch validators ``stdio_commands`` and ``remote_urls``, and the grammars of npx and uvx.

Defence in depth, not a boundary: that is admin authentication and network reach (LAUNCH-10).
"""

from collections.abc import Iterable
from typing import Any

from moorage.contract import (
    GatewayContext,
    LauncherGrammar,
    LaunchValidator,
    LaunchValidatorSpec,
    hookimpl,
)

MOORAGE_API = ">=0.1"
NAME = "launch_policy"


@hookimpl
def moorage_launch_validators() -> Iterable[LaunchValidatorSpec]:
    return (
        LaunchValidatorSpec("stdio_commands", _commands),
        LaunchValidatorSpec("remote_urls", _urls),
    )


@hookimpl
def moorage_launcher_grammars() -> Iterable[LauncherGrammar]:
    from moorage_plugins.launch_policy.data import grammars

    return grammars()


def _options(context: GatewayContext) -> Any:
    return context.settings.get("plugins", {}).get(NAME)


def _commands(context: GatewayContext) -> LaunchValidator:
    from moorage_plugins.launch_policy.commands import CommandRules
    from moorage_plugins.launch_policy.settings import read

    return CommandRules(read(_options(context)), context)


def _urls(context: GatewayContext) -> LaunchValidator:
    from moorage_plugins.launch_policy.remote import UrlRules
    from moorage_plugins.launch_policy.settings import read

    return UrlRules(read(_options(context)))
