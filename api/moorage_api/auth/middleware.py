"""Authentication and roles in front of every route that does not say it is public."""

from collections.abc import Callable
from typing import Any

from litestar import Request
from litestar.connection import ASGIConnection
from litestar.enums import ScopeType
from litestar.types import ASGIApp, Receive, Scope, Send

from moorage.contract.identity import Principal
from moorage_api.auth.authentication import Authentication
from moorage_api.problems import ApiProblem, answer

PUBLIC = "public"
"""Handler ``opt`` key: True opens a route to everybody. All others are closed (API-2)."""
ROLE = "role"
"""Handler ``opt`` key: the role that a route asks for, ``user`` where it says nothing."""
SCHEMA_PATH = "/schema"

_IMPLIED = {"user": frozenset({"user", "admin"}), "metrics": frozenset({"metrics", "admin"})}


class AuthenticationMiddleware:
    """Puts the principal into ``scope["user"]``, or answers 401, or 403 for a missing role."""

    def __init__(self, app: ASGIApp, authentication: Callable[[], Authentication]) -> None:
        self._app = app
        self._authentication = authentication

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in (ScopeType.HTTP, ScopeType.WEBSOCKET) and not _is_public(scope):
            try:
                scope["user"] = await self._admit(ASGIConnection(scope))
            except Exception as error:
                # Answered here rather than raised, so that metrics and spans see the status.
                request: Request[Any, Any, Any] = Request(scope, receive, send)
                refusal = answer(request, error).to_asgi_response(app=None, request=request)
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _admit(self, connection: "ASGIConnection[Any, Any, Any, Any]") -> Principal:
        headers = {name.lower(): value for name, value in connection.headers.items()}
        authentication = self._authentication()
        if not authentication.enabled:
            refuse_foreign_pages(headers)
        host = connection.client.host if connection.client else None
        principal = await authentication.principal(headers, host)
        needed = str(connection.scope["route_handler"].opt.get(ROLE, "user"))
        if not principal.roles & _IMPLIED.get(needed, frozenset({needed})):
            raise ApiProblem(403, "forbidden", f"This needs the role {needed!r}.")
        return principal


def _is_public(scope: Scope) -> bool:
    path = scope["path"]
    if path == SCHEMA_PATH or path.startswith(SCHEMA_PATH + "/"):
        return True
    return bool(scope["route_handler"].opt.get(PUBLIC, False))


def refuse_foreign_pages(headers: dict[str, str]) -> None:
    """Without authentication, a web page must not reach the gateway through its visitor's browser.

    Raises `ApiProblem` for another site's ``Origin`` and for a host name that is not this machine's (DNS
    rebinding).
    """
    host = headers.get("host", "")
    name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
    origin = headers.get("origin")
    if name not in ("localhost", "127.0.0.1", "[::1]") or (origin and origin.partition("://")[2] != host):
        raise ApiProblem(
            403, "forbidden", "Authentication is off: only this machine's own pages and programs may call."
        )
