"""Contributes section, interceptor and the token service's life; the rest is imported when used (PLUG-8)."""

from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from moorage.contract import (
    ALL_CALL_PHASES,
    PRECEDENCE_OAUTH,
    ConfigSection,
    GatewayContext,
    Interceptor,
    InterceptorSpec,
    LifecycleSpec,
    hookimpl,
)

if TYPE_CHECKING:
    from moorage_plugins.oauth.model import OAuth

MOORAGE_API = ">=0.1"
SECTION = "oauth"


def _load_model() -> "type[OAuth]":
    from moorage_plugins.oauth.model import OAuth

    return OAuth


def _build(context: GatewayContext) -> Interceptor:
    from moorage_plugins.oauth.interceptor import OAuthInterceptor
    from moorage_plugins.oauth.service import TokenService

    return OAuthInterceptor(TokenService.of(context))


def _open(context: GatewayContext) -> AbstractAsyncContextManager[None]:
    from moorage_plugins.oauth.service import TokenService

    return TokenService.of(context).running()


def _check(server: str, block: Any, entry: Mapping[str, Any]) -> tuple[str, ...]:
    from moorage_plugins.oauth.model import ignored_params

    ignored = ignored_params(block)
    if not ignored:
        return ()
    names = ", ".join(ignored)
    return (f"server {server!r}: {SECTION}.extra_token_params cannot override {names}; ignored",)


@hookimpl
def moorage_config_sections() -> Iterable[ConfigSection]:
    return (
        ConfigSection(
            SECTION,
            _load_model,
            secret_paths=("client_secret", "refresh_token", "extra_token_params.*"),
            secrets_as_null=True,
            destination_paths=("token_url",),
            http_only=True,
            check=_check,
        ),
    )


@hookimpl
def moorage_credential_interceptors() -> Iterable[InterceptorSpec]:
    return (
        InterceptorSpec(
            SECTION,
            PRECEDENCE_OAUTH,
            _build,
            section=SECTION,
            phases=ALL_CALL_PHASES | {"discover"},
            retries=True,  # once, after a 401
            http_only=True,
            timeout_seconds=60.0,
        ),
    )


@hookimpl
def moorage_lifecycle() -> Iterable[LifecycleSpec]:
    return (LifecycleSpec(SECTION, 1000, _open),)
