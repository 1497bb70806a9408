"""Contributes the section and the interceptor; nothing else is imported before they are used (PLUG-8)."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from moorage.contract import (
    PRECEDENCE_USER_AUTH,
    ConfigSection,
    GatewayContext,
    Interceptor,
    InterceptorSpec,
    hookimpl,
)

if TYPE_CHECKING:
    from moorage_plugins.user_auth.model import UserAuth

MOORAGE_API = ">=0.1"
SECTION = "user_auth"


def _load_model() -> "type[UserAuth]":
    from moorage_plugins.user_auth.model import UserAuth

    return UserAuth


def _build(context: GatewayContext) -> Interceptor:
    from moorage_plugins.user_auth.interceptor import UserAuthInterceptor

    return UserAuthInterceptor(context)


@hookimpl
def moorage_config_sections() -> Iterable[ConfigSection]:
    return (ConfigSection(SECTION, _load_model, secret_paths=("users.*",), http_only=True),)


@hookimpl
def moorage_credential_interceptors() -> Iterable[InterceptorSpec]:
    # All phases but discovery, which belongs to no user; outside a run the principal is the task's owner
    # (CRED-7).
    return (InterceptorSpec(SECTION, PRECEDENCE_USER_AUTH, _build, section=SECTION, http_only=True),)
