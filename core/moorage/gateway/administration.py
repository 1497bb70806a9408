"""Changes of the extensions config through the API (ADMIN, TASK-18)."""

import logging
from collections.abc import Awaitable, Mapping
from typing import Any, TypeVar

from moorage.config import ConfigChange, ConfigEditor, ConfigPlan, ConfigView, UnreadableConfig
from moorage.contract import Conflict, ToolSource
from moorage.gateway.frozen import FrozenExtensions, drift_message
from moorage.gateway.launches import LaunchJudges

log = logging.getLogger(__name__)
T = TypeVar("T")


class RestartRequired(Conflict):
    """A change of task-enabled servers that only a restart can bring into force; nothing was written.

    ``servers``: name → dotted keys. Answered with status 409 (ADMIN-5).
    """

    def __init__(self, servers: Mapping[str, tuple[str, ...]]) -> None:
        self.servers = dict(servers)
        super().__init__(
            f"not written: {drift_message(servers)}. To make this change, edit the file and restart, or "
            "disable the server first"
        )


class ConfigAdministration:
    """What the config routes do: validate, judge, write, reload.

    All methods raise `UnreadableConfig` where the file cannot be read or a named one is missing; the
    changing ones also `ConfigRejected`, `LaunchRefused`, `RestartRequired`, `PreconditionFailed` and
    `ConfigWriteFailed`. The file is then as it was.
    """

    def __init__(
        self, editor: ConfigEditor, frozen: FrozenExtensions, judges: LaunchJudges, tools: ToolSource
    ) -> None:
        self._editor = editor
        self._frozen = frozen
        self._judges = judges
        self._tools = tools

    async def view(self) -> ConfigView:
        """The masked servers and their ETag (ADMIN-1)."""
        return await _readable(self._editor.view())

    async def replace(
        self, submitted: Mapping[str, Any], *, if_match: str | None = None, dry_run: bool = False
    ) -> ConfigChange:
        """Replace the servers (ADMIN-2, ADMIN-6)."""
        change = self._editor.replace(submitted, if_match=if_match, dry_run=dry_run, approve=self._approve)
        return await self._made(change)

    async def set_enabled(
        self, server: str, enabled: bool, *, if_match: str | None = None, dry_run: bool = False
    ) -> ConfigChange:
        """Enable or disable one server (ADMIN-3); raises `NotFound`, too. Disabling always works."""
        change = self._editor.set_enabled(
            server, enabled, if_match=if_match, dry_run=dry_run, approve=self._approve
        )
        return await self._made(change)

    def tasks_after_restart(self, plan: ConfigPlan) -> tuple[str, ...]:
        """Servers of the plan whose durable tasks will work after a restart only."""
        return plan.new_task_servers(self._frozen.startup, self._frozen.task_sections)

    def _approve(self, plan: ConfigPlan) -> None:
        """Called in the editor's thread, under its locks, before anything is written."""
        self._judges.judge(plan.launches)
        if restart := plan.restart_required(self._frozen.startup, self._frozen.task_sections):
            raise RestartRequired(restart)

    async def _made(self, change: Awaitable[ConfigChange]) -> ConfigChange:
        made = await _readable(change)
        if made.written:
            plan = made.plan
            log.info(
                "the extensions config was changed: added %s, removed %s, changed %s",
                *(sorted(names) for names in (plan.added, plan.removed, plan.changed)),
            )
            await self._tools.reset()
        return made


async def _readable(work: Awaitable[T]) -> T:
    try:
        return await work
    except FileNotFoundError as missing:
        raise UnreadableConfig(f"{missing.filename or 'the extensions config'} does not exist") from None
