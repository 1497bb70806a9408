"""What commands open: the settings in force here and the plugins that are installed."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moorage.host import PluginHost
    from moorage.settings import Settings


def settings() -> "Settings":
    """Raises `ConfigError`."""
    from moorage.settings import load_settings

    return load_settings(env=os.environ, cwd=Path.cwd())


def host() -> "PluginHost":
    """Every plugin with its report; one that is not loaded is told of, and is no error here."""
    from moorage.host import load_plugins

    return load_plugins(settings().plugins, check=False)
