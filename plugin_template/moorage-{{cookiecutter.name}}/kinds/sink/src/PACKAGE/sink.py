"""Attention events as lines of a file."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from moorage.contract import ConfigError, DeliveryOutcome, DeliveryState, Notification
from pydantic import BaseModel, ConfigDict, ValidationError


class Settings(BaseModel):
    """The table ``[plugins.{{ cookiecutter.name }}]``."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    path: Path


def read(options: Any) -> Settings:
    """Raises `ConfigError`, which ends the gateway's start and names the key."""
    try:
        return Settings.model_validate(dict(options) if isinstance(options, Mapping) else {})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(("plugins.{{ cookiecutter.name }}", *map(str, first["loc"])))
        raise ConfigError(first["msg"], where=where) from None


class {{ cookiecutter.title }}Sink:
    """A notification sink: a delivery id that the file has already is written no second time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = asyncio.Lock()

    async def deliver(self, notification: Notification) -> DeliveryOutcome:
        async with self._lock:
            try:
                await asyncio.to_thread(self._write, notification)
            except OSError as error:
                # Moorage tries again, later and with the same delivery id.
                return DeliveryOutcome(DeliveryState.FAILED, f"the file cannot be written: {error.strerror}")
        return DeliveryOutcome(DeliveryState.DELIVERED)

    def _write(self, notification: Notification) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a+", encoding="utf-8") as file:
            file.seek(0)
            if any(json.loads(line)["delivery_id"] == notification.delivery_id for line in file):
                return
            event = {
                "delivery_id": notification.delivery_id,
                "task_id": notification.task_id,
                "task_name": notification.task_name,
                "kind": notification.kind.value,
                "status": notification.status.value,
                "user_id": notification.user_id,
                "result_preview": notification.result_preview,
                "error": notification.error,
            }
            file.write(json.dumps(event) + "\n")
