"""The application: routes, authentication, errors and the gateway's life around them."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from litestar import Litestar
from litestar.datastructures import State
from litestar.di import Provide
from litestar.middleware import DefineMiddleware
from litestar.plugins.opentelemetry import OpenTelemetryConfig, OpenTelemetryPlugin
from litestar.plugins.prometheus import PrometheusConfig

from moorage_api.auth.authentication import Authentication, NamedAuthenticator
from moorage_api.auth.first_key import first_admin_key
from moorage_api.auth.middleware import AuthenticationMiddleware
from moorage_api.encoding import JsonResponse
from moorage_api.openapi import openapi_config
from moorage_api.problems import answer
from moorage_api.routes import all_routes
from moorage_api.run_webhooks import RunWebhooks
from moorage_api.settings import ApiSettings, check_exposure
from moorage_api.wiring import (
    KEY,
    Runtime,
    authentication_of,
    provide_gateway,
    provide_principal,
    provide_runtime,
)

GatewayFactory = Callable[[], AbstractAsyncContextManager[Any]]
"""Opens the gateway; entered when the application starts, left when it stops."""


def create_app(
    open_gateway: GatewayFactory,
    settings: ApiSettings | None = None,
    *,
    body_limit_bytes: int = 4_194_304,
    make_admin_key: bool = False,
    debug: bool = False,
) -> Litestar:
    """The HTTP API around a gateway, which is opened on start and closed on stop (C74).

    ``make_admin_key``: where there is no key at all, one is generated and left in the runtime's
    ``admin_key_made``. ``debug`` changes nothing of what answers reveal. Raises `ConfigError` for an unsafe
    exposure (API-2).
    """
    runtime = Runtime(settings or ApiSettings())
    check_exposure(runtime.settings)

    @asynccontextmanager
    async def life(_: Litestar) -> AsyncIterator[None]:
        async with open_gateway() as gateway:
            runtime.begin(gateway, _authentication(gateway, runtime.settings))
            if make_admin_key:
                runtime.admin_key_made = await _first_key(gateway, runtime.settings)
            gateway.runs.on_end(RunWebhooks(runtime))
            try:
                yield
            finally:
                runtime.stopping.set()
                await runtime.finish()
                runtime.authentication = None

    return Litestar(
        route_handlers=all_routes(),
        lifespan=[life],
        state=State({KEY: runtime}),
        dependencies={
            "gateway": Provide(provide_gateway, sync_to_thread=False),
            "principal": Provide(provide_principal, sync_to_thread=False),
            "runtime": Provide(provide_runtime, sync_to_thread=False),
        },
        plugins=[OpenTelemetryPlugin(OpenTelemetryConfig(exclude_spans=["receive", "send"]))],
        middleware=[
            PrometheusConfig(app_name="moorage", prefix="moorage_http", group_path=True).middleware,
            DefineMiddleware(AuthenticationMiddleware, authentication=lambda: authentication_of(runtime)),
        ],
        exception_handlers={Exception: answer},
        response_class=JsonResponse,
        request_max_body_size=body_limit_bytes,
        openapi_config=openapi_config(),
        logging_config=None,
        debug=debug,
    )


async def _first_key(gateway: Any, settings: ApiSettings) -> str | None:
    if not settings.authentication or settings.admin_key is not None:
        return None
    return await first_admin_key(gateway.store.keys)


def _authentication(gateway: Any, settings: ApiSettings) -> Authentication:
    authenticators = [
        NamedAuthenticator(one.plugin, one.spec.build(gateway.context), gateway.host.account(one.plugin))
        for one in gateway.host.authenticators()
    ]
    keys = gateway.store.keys if gateway.store is not None else None
    return Authentication(keys, authenticators, settings.admin_key, settings.authentication)
