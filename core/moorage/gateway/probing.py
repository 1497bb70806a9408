"""Asking the configured servers without running a gateway (OPS-1, TOOL-2)."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from moorage.calls.redact import SecretRegistry
from moorage.contract import InterceptorRunner, LauncherGrammars, Redactor, ServerState, TaskDriverRegistry
from moorage.gateway.building import Builder
from moorage.gateway.compose import context_of, open_extensions
from moorage.gateway.frozen import FrozenExtensions
from moorage.gateway.parts import Grammars, interceptor_chain, task_drivers
from moorage.gateway.sources import ToolSources
from moorage.host import PluginHost
from moorage.settings import Settings


@asynccontextmanager
async def _tools(settings: Settings, host: PluginHost) -> AsyncIterator[ToolSources]:
    """Tool sources with the credentials of discovery, and with no store: nothing is polled or delivered."""
    async with AsyncExitStack() as stack:
        secrets = SecretRegistry()
        host.use_redactor(secrets.redact)
        file = open_extensions(settings, host, secrets)
        context = context_of(settings, None, FrozenExtensions(file, frozenset()))
        builder = Builder(host, context, strict=False)
        context.provide(Redactor, secrets)
        context.provide(LauncherGrammars, Grammars.of(builder))
        context.provide(InterceptorRunner, interceptor_chain(builder))
        tools = ToolSources(builder.all(host.tool_sources()), host)
        context.provide(TaskDriverRegistry, task_drivers(builder))
        for lifecycle in host.lifecycles():
            await stack.enter_async_context(lifecycle.spec.open(context))
        yield tools


async def probe_servers(settings: Settings, host: PluginHost) -> Sequence[ServerState]:
    """Start or reach every enabled server of the extensions config, list its tools, and stop it again.

    What the operator's own file starts is not judged by launch validators (LAUNCH-1). Raises `ConfigError`
    and `FileNotFoundError` where there is no config to read.
    """
    async with _tools(settings, host) as tools:
        return await tools.servers(probe=True)
