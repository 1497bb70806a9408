"""The table ``[plugins.launch_policy]``."""

import os
import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from moorage.contract import ConfigError

ALLOWLIST_VARIABLE = "MOORAGE_STDIO_COMMAND_ALLOWLIST"
PLACE = "plugins.launch_policy"
PACKAGE_LAUNCHERS = frozenset({"npx", "uvx"})
BARE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]*")
"""A name without path separators, white space and what a shell would read (LAUNCH-2)."""


def _bare(name: str) -> str:
    if not BARE_NAME.fullmatch(name):
        raise ValueError("must be a bare command name: letters, digits, '.', '_', '+' and '-'")
    return name


class LaunchSettings(BaseModel):
    """What the operator allows beyond the defaults.

    ``commands``: further bare command names. ``hosts``: host names or addresses of remote servers that are
    allowed although they are link-local or serve cloud metadata (LAUNCH-8).
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    commands: frozenset[Annotated[str, AfterValidator(_bare)]] = frozenset()
    hosts: frozenset[str] = frozenset()

    @property
    def allowlist(self) -> frozenset[str]:
        """All commands that the API may start."""
        return PACKAGE_LAUNCHERS | self.commands


def read(options: Any, env: Mapping[str, str] = os.environ) -> LaunchSettings:
    """Check the table; the names in `MOORAGE_STDIO_COMMAND_ALLOWLIST` (separated by commas or white space)
    come on top.

    Raises `ConfigError` that names the key.
    """
    table = dict(options) if isinstance(options, Mapping) else {}
    try:
        settings = LaunchSettings.model_validate(table)
        named = {name for name in re.split(r"[\s,]+", env.get(ALLOWLIST_VARIABLE, "")) if name}
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        raise ConfigError(first["msg"], where=".".join((PLACE, *map(str, first["loc"])))) from None
    wrong = sorted(name for name in named if not BARE_NAME.fullmatch(name))
    if wrong:
        raise ConfigError(f"{wrong[0]!r} is no bare command name", where=ALLOWLIST_VARIABLE)
    return settings.model_copy(update={"commands": settings.commands | named})
