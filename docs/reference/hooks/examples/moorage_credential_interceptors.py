"""An interceptor that says in a header for whom a call is made, and denies calls of nobody."""

import sys
from collections.abc import Iterable

from moorage.contract import (
    CredentialDenied,
    GatewayContext,
    Interceptor,
    InterceptorSpec,
    Next,
    ToolCall,
    ToolResult,
    hookimpl,
)


class OnBehalf:
    async def __call__(self, call: ToolCall, follow: Next, /) -> ToolResult:
        if call.principal is None:
            raise CredentialDenied(f"server {call.server.name!r}: nobody is calling")
        return await follow(call.with_header("X-On-Behalf", call.principal.user_id, source="on_behalf"))


def build(context: GatewayContext) -> Interceptor:
    return OnBehalf()


@hookimpl
def moorage_credential_interceptors() -> Iterable[InterceptorSpec]:
    return (InterceptorSpec("on_behalf", 2_500, build, phases=frozenset({"call", "submit"})),)


if __name__ == "__main__":
    import asyncio
    from pathlib import Path

    from moorage.contract import Headers, Principal
    from moorage.testing import gateway_context, host_with, server_config

    (one,) = host_with(sys.modules[__name__]).interceptors()
    interceptor = one.spec.build(gateway_context(Path("unused")))
    call = ToolCall(
        server=server_config("wiki", transport="http"),
        tool="look_up",
        arguments={},
        headers=Headers({}),
        phase="call",
        principal=Principal("alice"),
    )

    async def send(final: ToolCall) -> ToolResult:
        print(dict(final.headers))
        return ToolResult()

    asyncio.run(interceptor(call, send))
