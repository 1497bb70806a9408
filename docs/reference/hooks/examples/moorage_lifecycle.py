"""Something that runs for as long as the gateway does, and that other contributions find as a service."""

import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from moorage.contract import GatewayContext, LifecycleSpec, hookimpl


class Greeter:
    def greet(self) -> str:
        return "hello"


@asynccontextmanager
async def running(context: GatewayContext) -> AsyncIterator[None]:
    context.provide(Greeter, Greeter())
    print("the gateway starts")
    yield
    print("the gateway stops")


@hookimpl
def moorage_lifecycle() -> Iterable[LifecycleSpec]:
    return (LifecycleSpec("greeter", 500, running),)


if __name__ == "__main__":
    import asyncio
    from pathlib import Path

    from moorage.testing import gateway_context, host_with

    (one,) = host_with(sys.modules[__name__]).lifecycles()
    context = gateway_context(Path("unused"))

    async def live() -> None:
        async with one.spec.open(context):
            print(context.service(Greeter).greet())

    asyncio.run(live())
