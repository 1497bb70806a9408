"""Parts of a gateway for commands: servers are probed and tasks answered without running one (OPS-1)."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from moorage.calls.redact import SecretRegistry
from moorage.contract import (
    AnswerRecord,
    Conflict,
    GatewayContext,
    InterceptorRunner,
    LauncherGrammars,
    Principal,
    Redactor,
    ServerState,
    Store,
    TaskDriverRegistry,
)
from moorage.gateway.building import Builder
from moorage.gateway.compose import context_of, open_extensions, open_store
from moorage.gateway.frozen import FrozenExtensions
from moorage.gateway.lifecycles import entered
from moorage.gateway.parts import Drivers, Grammars, interceptor_chain, task_drivers
from moorage.gateway.sources import ToolSources
from moorage.host import PluginHost
from moorage.settings import Settings
from moorage.tasks.service import TaskService


@dataclass(frozen=True, slots=True)
class _Parts:
    context: GatewayContext
    tools: ToolSources
    drivers: Drivers


@asynccontextmanager
async def _opened(settings: Settings, host: PluginHost, store: Store | None = None) -> AsyncIterator[_Parts]:
    """Servers with their credentials and drivers; nothing is polled, delivered or run."""
    async with AsyncExitStack() as stack:
        secrets = SecretRegistry()
        host.use_redactor(secrets.redact)
        file = open_extensions(settings, host, secrets)
        context = context_of(settings, store, FrozenExtensions(file, frozenset()))
        builder = Builder(host, context, strict=False)
        context.provide(Redactor, secrets)
        context.provide(LauncherGrammars, Grammars.of(builder))
        context.provide(InterceptorRunner, interceptor_chain(builder))
        tools = ToolSources(builder.all(host.tool_sources()))
        drivers = task_drivers(builder)
        context.provide(TaskDriverRegistry, drivers)
        for lifecycle in host.lifecycles():
            await stack.enter_async_context(entered(lifecycle, builder))
        yield _Parts(context, tools, drivers)


async def probe_servers(settings: Settings, host: PluginHost) -> Sequence[ServerState]:
    """Start or reach every enabled server of the extensions config, list its tools, and stop it again.

    What the operator's own file starts is not judged by launch validators (LAUNCH-1). Raises `ConfigError`
    and `FileNotFoundError` where there is no config to read.
    """
    async with _opened(settings, host) as parts:
        return await parts.tools.servers(probe=True)


async def answer_task(
    settings: Settings, host: PluginHost, task_id: str, answer_id: str, response: object
) -> AnswerRecord:
    """Answer a task as an operator, whoever's it is (TASK-16); raises what `TaskService.respond` does.

    A task whose session a gateway holds (stdio) can be answered through that gateway only: `Conflict`.
    """
    async with open_store(settings, host=host) as store, _opened(settings, host, store) as parts:
        service = TaskService(
            repository=store.tasks,
            drivers=parts.drivers.named,
            settings=settings.tasks,
            clock=parts.context.clock,
            owner=parts.context.replica_id,
            wake=lambda: None,
            redact=parts.context.service(Redactor).redact,
        )
        operator = Principal("operator", roles=frozenset({"admin"}))
        task = await service.get(operator, task_id)
        if task.holder is not None:
            raise Conflict(
                f"task {task_id} lives in a session that a gateway holds: answer it through its API"
            )
        try:
            return await service.respond(operator, task_id, answer_id, response)
        finally:
            await service.aclose()
