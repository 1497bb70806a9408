"""What the gateway calls once at its start. Heavy imports stay inside the functions, so that listing plugins
stays quick."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from moorage.contract import ConfigSection, GatewayContext, TaskDriver, TaskDriverSpec, hookimpl

if TYPE_CHECKING:
    from {{ cookiecutter.package }}.section import Section

MOORAGE_API = "~={{ cookiecutter.moorage }}.0"
NAME = "{{ cookiecutter.name }}"
SECTION = "{{ cookiecutter.section }}"


def _load_model() -> "type[Section]":
    from {{ cookiecutter.package }}.section import Section

    return Section


def _build(context: GatewayContext) -> TaskDriver:
    from {{ cookiecutter.package }}.driver import {{ cookiecutter.title }}Driver

    return {{ cookiecutter.title }}Driver(context)


@hookimpl
def moorage_config_sections() -> Iterable[ConfigSection]:
    return (
        ConfigSection(
            SECTION, _load_model, secret_paths=("token",), destination_paths=("jobs_url",), http_only=True
        ),
    )


@hookimpl
def moorage_task_drivers() -> Iterable[TaskDriverSpec]:
    return (TaskDriverSpec(NAME, _build, section=SECTION),)
