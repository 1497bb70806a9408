"""Requests of a proxy that has authenticated its users itself, and says so with a shared secret."""

import hmac
import os
import sys
from collections.abc import Iterable

from moorage.contract import (
    AuthenticationFailed,
    Authenticator,
    AuthenticatorSpec,
    AuthRequest,
    GatewayContext,
    Principal,
    hookimpl,
)


class Proxy:
    def __init__(self, secret: str) -> None:
        self._secret = secret

    async def authenticate(self, request: AuthRequest) -> Principal | None:
        sent = request.headers.get("x-proxy-secret")
        if sent is None:
            return None  # none of ours: the next authenticator is asked
        if not self._secret or not hmac.compare_digest(sent.encode(), self._secret.encode()):
            raise AuthenticationFailed("the proxy's secret is wrong")
        return Principal(request.headers.get("x-proxy-user", "nobody"), roles=frozenset({"user"}))


def build(context: GatewayContext) -> Authenticator:
    return Proxy(os.environ.get("PROXY_SECRET", ""))


@hookimpl
def moorage_authenticators() -> Iterable[AuthenticatorSpec]:
    return (AuthenticatorSpec("proxy", 100, build),)


if __name__ == "__main__":
    import asyncio
    from pathlib import Path

    from moorage.testing import gateway_context, host_with

    os.environ["PROXY_SECRET"] = "shared-with-the-proxy"  # noqa: S105
    (one,) = host_with(sys.modules[__name__]).authenticators()
    authenticator = one.spec.build(gateway_context(Path("unused")))
    request = AuthRequest({"x-proxy-secret": "shared-with-the-proxy", "x-proxy-user": "alice"})
    print(asyncio.run(authenticator.authenticate(request)).user_id)
