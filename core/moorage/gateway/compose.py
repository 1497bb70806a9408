"""Composing a gateway from what the plugins contribute."""

import logging
import os
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from moorage.calls.redact import SecretRegistry
from moorage.clock import SystemClock
from moorage.config import ConfigEditor, ExtensionsFile, sections_in_use
from moorage.contract import (
    ConfigFault,
    ExtensionsSource,
    GatewayContext,
    InterceptorRunner,
    LauncherGrammars,
    Redactor,
    RoutingHintProvider,
    RunLauncher,
    Store,
    TaskDriverRegistry,
    TaskSubmitter,
)
from moorage.contract.empty import EMPTY
from moorage.gateway.administration import ConfigAdministration
from moorage.gateway.background import running
from moorage.gateway.building import Builder
from moorage.gateway.durable import task_runtime
from moorage.gateway.frozen import FrozenExtensions
from moorage.gateway.hints import RoutingHints
from moorage.gateway.launches import launch_judges
from moorage.gateway.leftovers import leftovers
from moorage.gateway.lifecycles import entered
from moorage.gateway.parts import Grammars, assistants, interceptor_chain, run_validators, task_drivers
from moorage.gateway.sections import accounted
from moorage.gateway.sources import ToolSources
from moorage.gateway.watchdog import watchdog
from moorage.host import PluginHost, load_plugins, missing_distribution, store_for
from moorage.runs.service import RunService
from moorage.settings import Settings
from moorage.tasks.service import TaskService

log = logging.getLogger(__name__)

SECTIONS_MEMO = "config.sections"
"""Sections that were in force, with the distributions of their plugins (PLUG-4)."""


@dataclass(frozen=True, slots=True)
class Gateway:
    """A running gateway. ``tasks`` is None where ``tasks_unavailable`` says why (TASK-14)."""

    settings: Settings
    host: PluginHost
    context: GatewayContext
    store: Store
    administration: ConfigAdministration
    tools: ToolSources
    runs: RunService
    tasks: TaskService | None
    tasks_unavailable: str | None
    replica_id: str


@asynccontextmanager
async def open_store(
    settings: Settings, *, host: PluginHost | None = None, migrate: bool | None = None
) -> AsyncIterator[Store]:
    """Open the database of the settings. SQLite is brought up to date first, unless ``migrate`` says
    otherwise (OPS-2). Raises `StoreUnavailable`."""
    store = store_for(host or load_plugins(settings.plugins), settings.database_url)
    settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    if migrate is None:
        migrate = settings.database_url.startswith("sqlite")
    async with store.spec.open(settings.database_url, SystemClock(), migrate) as opened:
        yield opened


@asynccontextmanager
async def open_gateway(settings: Settings, *, host: PluginHost | None = None) -> AsyncIterator[Gateway]:
    """Compose and run a gateway until the block is left.

    Raises `ConfigError`, `StoreUnavailable`, `PluginLoadFailed`; what was started by then is stopped again.
    """
    host = host or load_plugins(settings.plugins)
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(open_store(settings, host=host))
        secrets = SecretRegistry()
        host.use_redactor(secrets.redact)
        file = await _extensions(settings, host, store, secrets)
        task_sections = frozenset(one.spec.section for one in host.drivers() if one.spec.section)
        extensions = FrozenExtensions(file, task_sections)
        context = context_of(settings, store, extensions)
        builder = Builder(host, context, settings.plugins.strict)
        context.provide(Redactor, secrets)
        context.provide(LauncherGrammars, Grammars.of(builder))
        context.provide(InterceptorRunner, interceptor_chain(builder))
        context.provide(RoutingHintProvider, RoutingHints(builder.all(host.routing_hints())))
        tools = ToolSources(builder.all(host.tool_sources()))
        judges = launch_judges(builder)
        drivers = task_drivers(builder)
        context.provide(TaskDriverRegistry, drivers)
        runs = RunService(
            store=store,
            assistants=assistants(builder),
            validators=run_validators(builder),
            tools=tools,
            clock=context.clock,
            replica_id=context.replica_id,
            settings=settings,
            redactor=secrets,
        )
        context.provide(RunLauncher, runs)
        tasks = task_runtime(settings, store, drivers, builder, extensions)
        if tasks.service is not None:
            context.provide(TaskSubmitter, tasks.service)
            stack.push_async_callback(tasks.service.aclose)
        await stack.enter_async_context(leftovers(host))
        for lifecycle in host.lifecycles():
            await stack.enter_async_context(entered(lifecycle, builder))
        await stack.enter_async_context(watchdog(host))
        await stack.enter_async_context(store.watch(tasks.wake))
        await stack.enter_async_context(runs.running())
        await stack.enter_async_context(running(tasks.loops))
        yield Gateway(
            settings=settings,
            host=host,
            context=context,
            store=store,
            administration=ConfigAdministration(ConfigEditor(file), extensions, judges, tools),
            tools=tools,
            runs=runs,
            tasks=tasks.service,
            tasks_unavailable=tasks.unavailable,
            replica_id=context.replica_id,
        )


def context_of(settings: Settings, store: Store | None, extensions: ExtensionsSource) -> GatewayContext:
    """What plugins get to know of a gateway with these settings."""
    tables = {name: getattr(settings, name) for name in ("tasks", "assistants", "limits")}
    return GatewayContext(
        home=settings.home,
        replica_id=uuid.uuid4().hex,
        database_url=settings.database_url,
        clock=SystemClock(),
        extensions=extensions,
        settings={**tables, "plugins": settings.plugins.options},
        store=store,
    )


def open_extensions(
    settings: Settings,
    host: PluginHost,
    secrets: SecretRegistry,
    remembered: Mapping[str, str | None] = EMPTY,
) -> ExtensionsFile:
    """The extensions config of these settings, with the sections of the plugins."""
    return ExtensionsFile(
        explicit=settings.extensions_config,
        env=os.environ,
        cwd=Path.cwd(),
        sections=[accounted(one, host) for one in host.sections()],
        missing_distribution=missing_distribution,
        remembered_sections=remembered,
        on_warning=_warn,
        on_secret=secrets.register,
    )


async def _extensions(
    settings: Settings, host: PluginHost, store: Store, secrets: SecretRegistry
) -> ExtensionsFile:
    """The extensions config; a section that was in force once and has no plugin now refuses its server."""
    remembered: dict[str, str | None] = await store.memos.get(SECTIONS_MEMO) or {}
    extensions = open_extensions(settings, host, secrets, remembered)
    in_force = {
        one.spec.name: report.distribution if (report := host.report(one.plugin)) else None
        for one in host.sections()
        if one.spec.name in sections_in_use(extensions.current())
    }
    if not in_force.items() <= remembered.items():
        await store.memos.put(SECTIONS_MEMO, {**remembered, **in_force})
    return extensions


def _warn(fault: ConfigFault) -> None:
    log.log(logging.ERROR if fault.fatal else logging.WARNING, "%s: %s", fault.where, fault.message)
