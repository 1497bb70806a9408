"""Held to what Moorage asks of notification sinks."""

import json
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from moorage.contract import SinkSpec
from moorage.testing import SinkConformance

from {{ cookiecutter.package }}.plugin import NAME, moorage_notification_sinks


class Test{{ cookiecutter.title }}Sink(SinkConformance):
    folder: Path

    def spec(self) -> SinkSpec:
        (spec,) = moorage_notification_sinks()
        return spec

    def open_target(self) -> AbstractAsyncContextManager[Any]:
        return self._target()

    @asynccontextmanager
    async def _target(self) -> AsyncIterator[None]:
        with tempfile.TemporaryDirectory() as folder:
            self.folder = Path(folder)
            yield

    def settings(self) -> Mapping[str, Any]:
        return {"plugins": {NAME: {"path": str(self.folder / "events.jsonl")}}}

    def effects(self) -> Sequence[Any]:
        file = self.folder / "events.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.is_file() else []

    def break_target(self) -> None:
        file = self.folder / "events.jsonl"
        if file.is_file():
            file.rename(self.folder / "kept")
        file.mkdir()

    def mend_target(self) -> None:
        file = self.folder / "events.jsonl"
        file.rmdir()
        if (self.folder / "kept").is_file():
            (self.folder / "kept").rename(file)
