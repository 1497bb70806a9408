"""Prometheus metrics (API-4)."""

from litestar import Response, get
from prometheus_client import REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from moorage_api.auth.middleware import ROLE
from moorage_api.observability.instruments import instruments_of
from moorage_api.routes.documented import problems
from moorage_api.wiring import GatewayDep


@get(
    "/metrics",
    opt={ROLE: "metrics"},
    media_type=CONTENT_TYPE_LATEST,
    summary="Metrics",
    operation_id="metrics",
    tags=["health"],
    responses=problems(),
)
async def metrics(gateway: GatewayDep) -> Response[bytes]:
    """Of this process, in Prometheus' text format: for an admin, or a key with the role ``metrics``."""
    registries: list[CollectorRegistry] = [REGISTRY]
    if gateway.context is not None:
        registries.append(instruments_of(gateway.context).registry)
    text = b"".join(generate_latest(registry) for registry in registries)
    return Response(text, media_type=CONTENT_TYPE_LATEST)
