"""The remaining contributions: life-cycle, CLI groups, authenticators."""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from moorage.contract.identity import Principal

if TYPE_CHECKING:
    from moorage.contract.gateway import GatewayContext


@dataclass(frozen=True, slots=True)
class LifecycleSpec:
    """Contributes an async context manager, entered by precedence and left in reverse (PLUG-2)."""

    name: str
    precedence: int
    open: "Callable[[GatewayContext], AbstractAsyncContextManager[None]]"


@dataclass(frozen=True, slots=True)
class CliGroup:
    """Contributes ``moorage <name>``. ``load`` returns a ``typer.Typer`` or a ``click.Command``."""

    name: str
    help: str
    load: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class AuthRequest:
    """What an authenticator may look at. Header names are in lower case."""

    headers: Mapping[str, str] = field(repr=False)
    client_host: str | None = None


class Authenticator(Protocol):
    """Turns a request's credentials into a principal (API-2)."""

    async def authenticate(self, request: AuthRequest) -> Principal | None:
        """None where the request carries none of its credentials; raises `AuthenticationFailed` where it
        does and they are wrong."""
        ...


@dataclass(frozen=True, slots=True)
class AuthenticatorSpec:
    """Contributes an authenticator; asked by precedence, the first principal counts."""

    name: str
    precedence: int
    build: "Callable[[GatewayContext], Authenticator]"
