"""The application's own state, and what handlers get injected."""

import asyncio
from dataclasses import dataclass, field
from typing import Annotated, Any

from litestar import Request
from litestar.connection import ASGIConnection
from litestar.di import NamedDependency
from litestar.params import PathParameter, SkipValidation

from moorage.contract.identity import Principal
from moorage_api.auth.authentication import Authentication
from moorage_api.problems import ApiProblem
from moorage_api.settings import ApiSettings

KEY = "moorage"


@dataclass
class Runtime:
    """All that lives between start and stop of one application."""

    settings: ApiSettings
    gateway: Any = None
    authentication: Authentication | None = None
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the server is asked to stop, so that streams end instead of holding it up."""


def runtime_of(connection: "ASGIConnection[Any, Any, Any, Any]") -> Runtime:
    runtime: Runtime = connection.app.state[KEY]
    return runtime


def authentication_of(runtime: Runtime) -> Authentication:
    """Raises `ApiProblem` before the start is complete; there is no request then, usually."""
    if runtime.authentication is None:
        raise ApiProblem(503, "starting", "The gateway is starting.")
    return runtime.authentication


def provide_gateway(request: Request[Any, Any, Any]) -> Any:
    return runtime_of(request).gateway


def provide_principal(request: Request[Any, Any, Any]) -> Any:
    principal: Principal = request.scope["user"]
    return principal


def provide_runtime(request: Request[Any, Any, Any]) -> Any:
    return runtime_of(request)


GatewayDep = NamedDependency[SkipValidation[Any]]
PrincipalDep = NamedDependency[SkipValidation[Principal]]
RuntimeDep = NamedDependency[SkipValidation[Runtime]]

ID_PATTERN = "^[A-Za-z0-9_-]{1,64}$"
ThreadId = Annotated[
    str,
    PathParameter(pattern=ID_PATTERN, description="1 to 64 of letters, digits, `-` and `_`."),
]
