"""The durable task runtime of a gateway, or why it has none (TASK-14, TASK-15)."""

import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

from moorage.contract import ConfigError, Redactor, Store, StoreSignal
from moorage.gateway.building import Builder
from moorage.gateway.frozen import FrozenExtensions
from moorage.gateway.parts import Drivers
from moorage.settings import Settings
from moorage.tasks.notifier import Notifier
from moorage.tasks.observing import observed_by
from moorage.tasks.scheduler import Scheduler
from moorage.tasks.service import TaskService

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TaskRuntime:
    """What runs durable tasks. ``service`` is None where ``unavailable`` says why."""

    service: TaskService | None = None
    unavailable: str | None = None
    loops: Mapping[str, Callable[[], Coroutine[None, None, None]]] = field(default_factory=dict)
    wake: Callable[[StoreSignal], None] = lambda signal: None


def task_runtime(
    settings: Settings, store: Store, drivers: Drivers, builder: Builder, extensions: FrozenExtensions
) -> TaskRuntime:
    """Install the runtime, unless settings, store or drivers speak against it.

    Raises `ConfigError` where settings demand it, or a configured server needs it, and it cannot be.
    """
    reason = _unavailable(settings, store, drivers)
    if reason is not None:
        _refuse_servers_with_tasks(extensions, reason)
        log.info("durable tasks are off: %s", reason)
        return TaskRuntime(unavailable=reason)
    context = builder.context
    shared: dict[str, Any] = {
        "repository": store.tasks,
        "settings": settings.tasks,
        "clock": context.clock,
        "owner": context.replica_id,
        "redact": context.service(Redactor).redact,
    }
    built = builder.all(builder.host.sinks(), optional=True)
    sinks = {one.name: one.object for one in built}
    accounts = {one.name: one.account for one in built}
    observe = observed_by(context)
    try:
        notifier = Notifier(
            sinks=sinks, accounts=accounts, primary=settings.tasks.sink, observe=observe, **shared
        )
    except ValueError as error:
        raise ConfigError(str(error), where="tasks.sink") from None
    scheduler = Scheduler(drivers=drivers.named, on_attention=notifier.wake, observe=observe, **shared)

    def wake(signal: StoreSignal | None = None) -> None:
        if signal is None or signal.kind == "tasks":
            scheduler.wake()
        if signal is None or signal.kind == "notifications":
            notifier.wake()

    service = TaskService(drivers=drivers.named, wake=wake, server_allowed=extensions.refusal, **shared)
    return TaskRuntime(service, None, {"scheduler": scheduler.run, "notifier": notifier.run}, wake)


def _unavailable(settings: Settings, store: Store, drivers: Drivers) -> str | None:
    reason = None
    if settings.tasks.enabled is False:
        reason = "they are switched off (tasks.enabled)"
    elif not store.durable:
        reason = "they need a SQL store: set MOORAGE_DATABASE_URL to SQLite or PostgreSQL"
    elif not drivers.named:
        reason = "no task driver is installed: install moorage-drivers"
    if reason and settings.tasks.enabled is True:
        raise ConfigError(f"durable tasks cannot run: {reason}", where="tasks.enabled")
    return reason


def _refuse_servers_with_tasks(extensions: FrozenExtensions, reason: str) -> None:
    for server in extensions.startup.servers.values():
        wanted = sorted(extensions.task_sections & set(server.sections))
        if server.enabled and wanted:
            raise ConfigError(
                f"server {server.name!r} has durable tasks ({wanted[0]}), and {reason}",
                where="extensions config",
            )
