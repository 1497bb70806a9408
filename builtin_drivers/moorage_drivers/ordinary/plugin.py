"""The plugin: the driver and its config section."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from moorage.contract import ConfigSection, GatewayContext, TaskDriver, TaskDriverSpec, hookimpl

if TYPE_CHECKING:
    from pydantic import BaseModel

MOORAGE_API = ">=0.1"
DRIVER = "ordinary"
SECTION = "task_toolsets"
MAX_SERVER_NAME_CHARACTERS = 128


def _load_model() -> "type[BaseModel]":
    from moorage_drivers.ordinary.model import TaskToolset

    return TaskToolset


def _check(server: str, block: Any, entry: Mapping[str, Any]) -> tuple[str, ...]:
    from moorage.contract import ConfigError

    if not server.strip() or len(server) > MAX_SERVER_NAME_CHARACTERS:
        raise ConfigError(
            f"the name of a server with {SECTION} has at most {MAX_SERVER_NAME_CHARACTERS} characters"
            " and is not blank (BOUND-3)"
        )
    return ()


def _build(gateway: GatewayContext) -> TaskDriver:
    from moorage_drivers.ordinary.driver import OrdinaryDriver

    return OrdinaryDriver(gateway)


@hookimpl
def moorage_config_sections() -> Sequence[ConfigSection]:
    return (ConfigSection(SECTION, _load_model, accepts_list=True, check=_check),)


@hookimpl
def moorage_task_drivers() -> Sequence[TaskDriverSpec]:
    return (TaskDriverSpec(DRIVER, _build, section=SECTION),)
