"""What the gateway calls once at its start."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from moorage.contract import (
    ConfigSection,
    GatewayContext,
    Interceptor,
    InterceptorSpec,
    LifecycleSpec,
    hookimpl,
)

if TYPE_CHECKING:
    from moorage_secrets_store.interceptor import SecretsStoreInterceptor
    from moorage_secrets_store.section import Section

MOORAGE_API = "~=0.1.0"
SECTION = "secrets_store"
PRECEDENCE = 2500
"""After `oauth` (1000) and `user_auth` (2000), before `headers_from_context` (3000)."""


def _load_model() -> "type[Section]":
    from moorage_secrets_store.section import Section

    return Section


def _interceptor(context: GatewayContext) -> "SecretsStoreInterceptor":
    from moorage_secrets_store.interceptor import SecretsStoreInterceptor

    if not context.has(SecretsStoreInterceptor):
        context.provide(SecretsStoreInterceptor, SecretsStoreInterceptor(context))
    return context.service(SecretsStoreInterceptor)


def _build(context: GatewayContext) -> Interceptor:
    return _interceptor(context)


@asynccontextmanager
async def _open(context: GatewayContext) -> AsyncIterator[None]:
    from moorage_secrets_store.interceptor import SecretsStoreInterceptor

    yield
    # Closes what was built; where the settings are missing, nothing was.
    if context.has(SecretsStoreInterceptor):
        await context.service(SecretsStoreInterceptor).aclose()


@hookimpl
def moorage_config_sections() -> Iterable[ConfigSection]:
    return (ConfigSection(SECTION, _load_model, destination_paths=("path",), http_only=True),)


@hookimpl
def moorage_credential_interceptors() -> Iterable[InterceptorSpec]:
    return (InterceptorSpec(SECTION, PRECEDENCE, _build, section=SECTION, http_only=True),)


@hookimpl
def moorage_lifecycle() -> Iterable[LifecycleSpec]:
    return (LifecycleSpec(SECTION, 1000, _open),)
