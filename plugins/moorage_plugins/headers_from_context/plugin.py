"""Contributes the section and the interceptor; nothing else is imported before they are used (PLUG-8)."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from moorage.contract import (
    PRECEDENCE_HEADERS_FROM_CONTEXT,
    ConfigSection,
    GatewayContext,
    Interceptor,
    InterceptorSpec,
    hookimpl,
)

if TYPE_CHECKING:
    from moorage_plugins.headers_from_context.model import HeadersFromContext

MOORAGE_API = ">=0.1"
SECTION = "headers_from_context"


def _load_model() -> "type[HeadersFromContext]":
    from moorage_plugins.headers_from_context.model import HeadersFromContext

    return HeadersFromContext


def _build(context: GatewayContext) -> Interceptor:
    from moorage_plugins.headers_from_context.interceptor import HeadersFromContextInterceptor

    return HeadersFromContextInterceptor(context)


def _check(server: str, block: Any, entry: Mapping[str, Any]) -> tuple[str, ...]:
    if block.on_missing != "deny" or not entry.get("task_toolsets"):
        return ()
    warning = (
        f"server {server!r}: the headers of {SECTION} are sent when a durable task is submitted, but not "
        "when it is polled, answered or cancelled, since a run's secrets end with the run; these calls use "
        "the server's own credentials, and the task owner's where user_auth is configured"
    )
    return (warning,)


@hookimpl
def moorage_config_sections() -> Iterable[ConfigSection]:
    # No secret paths: the block holds names only, and an API shows it as it is.
    return (ConfigSection(SECTION, _load_model, http_only=True, check=_check),)


@hookimpl
def moorage_credential_interceptors() -> Iterable[InterceptorSpec]:
    return (
        InterceptorSpec(
            SECTION,
            PRECEDENCE_HEADERS_FROM_CONTEXT,
            _build,
            section=SECTION,
            phases=frozenset({"call", "submit"}),  # where a run's secrets exist (CRED-7)
            http_only=True,
        ),
    )
