"""Liveness and readiness (API-4)."""

import asyncio

from litestar import get, head

from moorage_api.auth.middleware import PUBLIC
from moorage_api.problems import ApiProblem
from moorage_api.routes.documented import public_problems
from moorage_api.schemas.health import Health
from moorage_api.wiring import RuntimeDep

READY_TIMEOUT_SECONDS = 5.0


@get("/healthz", opt={PUBLIC: True}, summary="Alive", operation_id="healthz", tags=["health"])
async def healthz() -> Health:
    """The process answers; says nothing about the database."""
    return Health("ok")


@head("/healthz", opt={PUBLIC: True}, include_in_schema=False)
async def healthz_head() -> None:
    """For probes that want no body."""


@head("/readyz", opt={PUBLIC: True}, include_in_schema=False)
async def readyz_head(runtime: RuntimeDep) -> None:
    await readyz.fn(runtime)


@get(
    "/readyz",
    opt={PUBLIC: True},
    summary="Ready",
    operation_id="readyz",
    tags=["health"],
    responses=public_problems(503),
)
async def readyz(runtime: RuntimeDep) -> Health:
    """The gateway is started, is not stopping, and its database answers."""
    if runtime.stopping.is_set():
        raise ApiProblem(503, "stopping", "The gateway is stopping.")
    store = runtime.gateway.store
    if store is not None:
        async with asyncio.timeout(READY_TIMEOUT_SECONDS):
            await store.ping()
    return Health("ok")
