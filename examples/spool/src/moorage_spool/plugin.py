"""What the gateway calls once at its start."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from moorage.contract import ConfigSection, GatewayContext, TaskDriver, TaskDriverSpec, hookimpl

if TYPE_CHECKING:
    from moorage_spool.section import Section

MOORAGE_API = "~=0.1.0"
NAME = "spool"
SECTION = "spool"


def _load_model() -> "type[Section]":
    from moorage_spool.section import Section

    return Section


def _build(context: GatewayContext) -> TaskDriver:
    from moorage_spool.driver import SpoolDriver

    return SpoolDriver(context)


@hookimpl
def moorage_config_sections() -> Iterable[ConfigSection]:
    return (ConfigSection(SECTION, _load_model),)


@hookimpl
def moorage_task_drivers() -> Iterable[TaskDriverSpec]:
    return (TaskDriverSpec(NAME, _build, section=SECTION),)
