"""Composing a gateway from what the plugins contribute."""

import os
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moorage.calls.chain import BuiltInterceptor, InterceptorChain, refusing
from moorage.calls.local import load_local_interceptors
from moorage.calls.redact import SecretRegistry
from moorage.clock import SystemClock
from moorage.config import ExtensionsFile
from moorage.contract import (
    ConfigError,
    GatewayContext,
    InterceptorRunner,
    Redactor,
    RoutingHintProvider,
    RunLauncher,
    Store,
    StoreUnavailable,
    TaskDriver,
    TaskDriverRegistry,
    TaskSubmitter,
)
from moorage.gateway.background import running
from moorage.gateway.building import Builder
from moorage.gateway.hints import RoutingHints
from moorage.gateway.sources import ToolSources
from moorage.host import LoadReport, PluginHost, load_plugins, missing_distribution
from moorage.runs.admission import NamedValidator
from moorage.runs.directory import NamedAssistant
from moorage.runs.service import RunService
from moorage.settings import Settings
from moorage.tasks.drivers import NamedDriver
from moorage.tasks.notifier import Notifier
from moorage.tasks.scheduler import Scheduler
from moorage.tasks.service import TaskService


@dataclass(frozen=True, slots=True)
class Gateway:
    """A running gateway. ``tasks`` is None where ``tasks_unavailable`` says why (TASK-14)."""

    settings: Settings
    host: PluginHost
    context: GatewayContext
    store: Store
    extensions: ExtensionsFile
    tools: ToolSources
    runs: RunService
    tasks: TaskService | None
    tasks_unavailable: str | None
    replica_id: str


class _Drivers:
    def __init__(self, drivers: Mapping[str, TaskDriver]) -> None:
        self._drivers = drivers

    def drivers(self) -> Mapping[str, TaskDriver]:
        return self._drivers


@asynccontextmanager
async def open_store(settings: Settings, *, host: PluginHost | None = None) -> AsyncIterator[Store]:
    """Open the database of the settings; SQLite is migrated first (OPS-2)."""
    host = host or load_plugins(settings.plugins)
    scheme = settings.database_url.partition(":")[0].partition("+")[0]
    for contribution in host.stores():
        if scheme in contribution.spec.schemes:
            settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
            migrate = scheme == "sqlite"
            async with contribution.spec.open(settings.database_url, SystemClock(), migrate) as store:
                yield store
            return
    raise StoreUnavailable(f"no plugin opens {scheme!r} databases: pip install moorage-drivers")


@asynccontextmanager
async def open_gateway(settings: Settings, *, host: PluginHost | None = None) -> AsyncIterator[Gateway]:
    """Compose and run a gateway until the block is left; raises `ConfigError`, `StoreUnavailable`."""
    host = host or load_plugins(settings.plugins)
    clock, replica_id, secrets = SystemClock(), uuid.uuid4().hex, SecretRegistry()
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(open_store(settings, host=host))
        extensions = ExtensionsFile(
            explicit=settings.extensions_config,
            env=os.environ,
            cwd=Path.cwd(),
            sections=[one.spec for one in host.sections()],
            missing_distribution=missing_distribution,
            on_secret=secrets.register,
        )
        context = GatewayContext(
            home=settings.home,
            replica_id=replica_id,
            database_url=settings.database_url,
            clock=clock,
            extensions=extensions,
            settings={
                "tasks": settings.tasks,
                "assistants": settings.assistants,
                "limits": settings.limits,
                "plugins": settings.plugins.options,
            },
            store=store,
        )
        builder = Builder(host, context, settings.plugins.strict)
        context.provide(Redactor, secrets)
        context.provide(InterceptorRunner, _chain(builder))
        context.provide(RoutingHintProvider, RoutingHints(builder.all(host.routing_hints())))
        tools = ToolSources(builder.all(host.tool_sources()), host)
        drivers = {
            one.name: NamedDriver(one.name, one.plugin, one.object) for one in builder.all(host.drivers())
        }
        context.provide(TaskDriverRegistry, _Drivers({n: d.driver for n, d in drivers.items()}))
        runs = RunService(
            store=store,
            assistants=_assistants(builder),
            validators=[
                NamedValidator(one.name, one.plugin, one.object) for one in builder.all(host.run_validators())
            ],
            tools=tools,
            clock=clock,
            replica_id=replica_id,
            settings=settings,
            redactor=secrets,
        )
        context.provide(RunLauncher, runs)
        unavailable = _tasks_unavailable(settings, store, drivers)
        tasks: TaskService | None = None
        loops: dict[str, Any] = {}
        if unavailable is None:
            tasks, loops = _tasks(settings, store, drivers, builder, secrets)
            context.provide(TaskSubmitter, tasks)
            stack.push_async_callback(tasks.aclose)
        _check_task_servers(host, extensions, unavailable)
        for lifecycle in host.lifecycles():
            await stack.enter_async_context(lifecycle.spec.open(context))
        await stack.enter_async_context(runs.running())
        await stack.enter_async_context(running(loops))
        yield Gateway(settings, host, context, store, extensions, tools, runs, tasks, unavailable, replica_id)


def _chain(builder: Builder) -> InterceptorChain:
    contributed = builder.host.interceptors()
    built = {one.name: one.object for one in builder.all(contributed)}
    local = load_local_interceptors(builder.context)
    reports = [
        _local_report(one) for one in local if one.plugin not in {r.name for r in builder.host.reports}
    ]
    builder.host.reports += tuple(reports)
    return InterceptorChain(
        [
            BuiltInterceptor(one.spec, built[one.spec.name], one.plugin)
            if one.spec.name in built
            else refusing(one.spec, one.plugin)
            for one in contributed
        ]
        + local
    )


def _local_report(one: BuiltInterceptor) -> LoadReport:
    return LoadReport(
        name=one.plugin,
        distribution="mcpInterceptors of the extensions config",
        version="",
        entry_point=one.plugin,
        state="loaded",
        hooks=("moorage_credential_interceptors",),
    )


def _assistants(builder: Builder) -> dict[str, NamedAssistant]:
    specs = {one.spec.name: one.spec for one in builder.host.assistants()}
    return {
        one.name: NamedAssistant(
            one.name,
            specs[one.name].description,
            one.object,
            available(builder.context) if (available := specs[one.name].available) else None,
        )
        for one in builder.all(builder.host.assistants())
    }


def _tasks_unavailable(settings: Settings, store: Store, drivers: Mapping[str, Any]) -> str | None:
    """Why durable tasks are off; None where they are on (TASK-14). Raises where they were demanded."""
    reason = None
    if settings.tasks.enabled is False:
        reason = "tasks are switched off (tasks.enabled)"
    elif not store.durable:
        reason = "durable tasks need a SQL store: set MOORAGE_DATABASE_URL to SQLite or PostgreSQL"
    elif not drivers:
        reason = "no task driver is installed: pip install moorage-drivers"
    if reason and settings.tasks.enabled is True:
        raise ConfigError(reason, where="tasks.enabled")
    return reason


def _check_task_servers(host: PluginHost, extensions: ExtensionsFile, unavailable: str | None) -> None:
    sections = {one.spec.section for one in host.drivers()} - {None}
    for server in extensions.current().servers.values():
        if unavailable and sections & set(server.sections):
            raise ConfigError(f"server {server.name!r} has durable tasks, but {unavailable}")


def _tasks(
    settings: Settings,
    store: Store,
    drivers: Mapping[str, NamedDriver],
    builder: Builder,
    secrets: SecretRegistry,
) -> tuple[TaskService, dict[str, Any]]:
    context = builder.context
    shared: dict[str, Any] = {
        "repository": store.tasks,
        "settings": settings.tasks,
        "clock": context.clock,
        "owner": context.replica_id,
        "redact": secrets.redact,
    }
    sinks = {one.name: one.object for one in builder.all(builder.host.sinks())}
    notifier = Notifier(sinks=sinks, primary=settings.tasks.sink, **shared)
    scheduler = Scheduler(drivers=drivers, on_attention=notifier.wake, **shared)

    def wake() -> None:
        scheduler.wake()
        notifier.wake()

    service = TaskService(drivers=drivers, wake=wake, **shared)
    return service, {"scheduler": scheduler.run, "notifier": notifier.run}
