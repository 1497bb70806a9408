"""Servers registered over HTTP may lead to the hosts of the house only."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from moorage.contract import ConfigError, LaunchRefused, LaunchRequest
from pydantic import BaseModel, ConfigDict, ValidationError


class Settings(BaseModel):
    """The table ``[plugins.{{ cookiecutter.name }}]``."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    hosts: frozenset[str] = frozenset()


def read(options: Any) -> Settings:
    """Raises `ConfigError`, which ends the gateway's start and names the key."""
    try:
        return Settings.model_validate(dict(options) if isinstance(options, Mapping) else {})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(("plugins.{{ cookiecutter.name }}", *map(str, first["loc"])))
        raise ConfigError(first["msg"], where=where) from None


class {{ cookiecutter.title }}Validator:
    """A launch validator. Pure: the same request always gets the same verdict."""

    def __init__(self, settings: Settings) -> None:
        self._hosts = frozenset(host.lower() for host in settings.hosts)

    def validate(self, request: LaunchRequest) -> None:
        if request.transport == "stdio":
            return
        try:
            host = urlsplit(request.url or "").hostname
        except ValueError:
            host = None
        if host not in self._hosts:
            # Names the server, and never quotes a value.
            raise LaunchRefused(f"server {request.server!r}: its host is none of plugins.{{ cookiecutter.name }}.hosts")
