"""What the gateway calls once at its start."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from moorage.contract import ConfigSection, GatewayContext, Interceptor, InterceptorSpec, hookimpl

if TYPE_CHECKING:
    from {{ cookiecutter.package }}.section import Section

MOORAGE_API = "~={{ cookiecutter.moorage }}.0"
SECTION = "{{ cookiecutter.section }}"
PRECEDENCE = 2500
"""After `oauth` (1000) and `user_auth` (2000), before `headers_from_context` (3000)."""


def _load_model() -> "type[Section]":
    from {{ cookiecutter.package }}.section import Section

    return Section


def _build(context: GatewayContext) -> Interceptor:
    from {{ cookiecutter.package }}.interceptor import {{ cookiecutter.title }}Interceptor

    return {{ cookiecutter.title }}Interceptor(context)


@hookimpl
def moorage_config_sections() -> Iterable[ConfigSection]:
    return (ConfigSection(SECTION, _load_model, secret_paths=("users.*",), http_only=True),)


@hookimpl
def moorage_credential_interceptors() -> Iterable[InterceptorSpec]:
    return (InterceptorSpec(SECTION, PRECEDENCE, _build, section=SECTION, http_only=True),)
