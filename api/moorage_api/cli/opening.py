"""What the commands open: settings, gateway, store. The one place that knows how the core does it."""

import os
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

from moorage.contract.stores import Store
from moorage.gateway import Gateway, open_gateway, open_store
from moorage.settings import Settings
from moorage.settings_load import load_settings


def settings(config: Path | None = None) -> Settings:
    """Raises `ConfigError`. ``config``: the extensions config to use instead of searching for one."""
    loaded = load_settings(env=os.environ, cwd=Path.cwd())
    return loaded if config is None else replace(loaded, extensions_config=config)


def gateway(settings: Settings) -> AbstractAsyncContextManager[Gateway]:
    """Open the gateway."""
    return open_gateway(settings)


def store(settings: Settings) -> AbstractAsyncContextManager[Store]:
    """Open the store alone."""
    return open_store(settings)
