"""The application's own state, and what handlers get injected."""

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from litestar import Request
from litestar.connection import ASGIConnection
from litestar.di import NamedDependency
from litestar.params import SkipValidation

from moorage.contract.identity import Principal
from moorage_api.auth.authentication import Authentication
from moorage_api.problems import ApiProblem
from moorage_api.settings import ApiSettings

KEY = "moorage"
log = logging.getLogger(__name__)


@dataclass
class Runtime:
    """All that lives between start and stop of one application."""

    settings: ApiSettings
    gateway: Any = None
    authentication: Authentication | None = None
    admin_key_made: str | None = field(default=None, repr=False)
    """The key that this start has generated."""
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the server is asked to stop, so that streams end instead of holding it up."""
    stopped: bool = True
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    _aside: set[asyncio.Task[None]] = field(default_factory=set)

    def begin(self, gateway: Any, authentication: Authentication) -> None:
        """The gateway is open. Called in the loop that serves, which may be another one every time."""
        self.gateway, self.authentication = gateway, authentication
        self.stopping, self.stopped = asyncio.Event(), False
        self.started_at = datetime.now(UTC)

    def aside(self, work: Coroutine[Any, Any, object]) -> None:
        """Do it beside the request that asked for it; what fails is logged, the end waits for it. After the
        end nothing is done any more."""
        if self.stopped:
            work.close()
            return
        task = asyncio.create_task(_logged(work))
        self._aside.add(task)
        task.add_done_callback(self._aside.discard)

    async def finish(self) -> None:
        """Wait for what runs aside, and take no more of it."""
        self.stopped = True
        await asyncio.gather(*self._aside)


async def _logged(work: Coroutine[Any, Any, object]) -> None:
    try:
        await work
    except Exception:
        log.exception("work beside a request failed")


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
