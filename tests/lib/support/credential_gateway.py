"""The credential plugins, the chain and the MCP caller on a real extensions config, and what servers saw."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from moorage.calls.chain import BuiltInterceptor, InterceptorChain
from moorage.calls.redact import SecretRegistry
from moorage.clock import SystemClock
from moorage.config import ExtensionsFile
from moorage.contract import (
    CallContext,
    CallPhase,
    GatewayContext,
    InterceptorRunner,
    Redactor,
    Store,
    TaskDriverRegistry,
    ToolCaller,
    ToolResult,
    ToolSource,
)
from moorage_drivers.mcp import plugin as mcp_plugin
from moorage_drivers.ordinary import plugin as ordinary_plugin
from moorage_drivers.ordinary.driver import OrdinaryDriver
from moorage_plugins.headers_from_context import plugin as headers_from_context
from moorage_plugins.oauth import plugin as oauth
from moorage_plugins.routing import plugin as routing
from moorage_plugins.user_auth import plugin as user_auth
from support.mcp_servers import Drivers, context

CREDENTIALS = (oauth, user_auth, headers_from_context)
TOOLSETS = [
    {
        "name": "job",
        "submit_tool": "job_submit",
        "status_tool": "job_status",
        "cancel_tool": "job_cancel",
        "respond_tool": "job_respond",
    }
]


@dataclass
class CredentialGateway:
    context: GatewayContext
    extensions: ExtensionsFile
    source: ToolSource
    driver: OrdinaryDriver
    warnings: list[str]

    async def call(
        self,
        server: str,
        tool: str = "touch",
        *,
        user: str = "alice",
        phase: CallPhase = "call",
        **fields: Any,
    ) -> ToolResult:
        """``secrets``, ``thread`` and ``arguments`` as further fields."""
        caller: ToolCaller = self.context.service(ToolCaller)
        arguments = fields.pop("arguments", {})
        on_behalf = self.on_behalf(user, **fields)
        return await caller.call(server, tool, arguments, context=on_behalf, phase=phase)

    def on_behalf(self, user: str = "alice", thread: str | None = "t1", **fields: Any) -> CallContext:
        return context(user, thread, **fields)


@asynccontextmanager
async def credential_gateway(
    home: Path,
    servers: Mapping[str, Any],
    *,
    env: Mapping[str, str] | None = None,
    store: Store | None = None,
) -> AsyncIterator[CredentialGateway]:
    """Composed as the host composes it, as far as credentials are concerned."""
    config = home / "extensions_config.json"
    config.write_text(json.dumps({"mcpServers": dict(servers)}))
    registry = SecretRegistry()
    warnings: list[str] = []
    extensions = ExtensionsFile(
        explicit=config,
        env=env or {},
        cwd=home,
        sections=[
            section
            for plugin in (*CREDENTIALS, routing, ordinary_plugin)
            for section in plugin.moorage_config_sections()
        ],
        on_secret=registry.register,
        on_warning=lambda fault: warnings.append(f"{fault.where}: {fault.message}"),
    )
    made = GatewayContext(
        home=home,
        replica_id="test",
        database_url="sqlite://",
        clock=SystemClock(),
        extensions=extensions,
        store=store,
    )
    made.provide(Redactor, registry)
    made.provide(
        InterceptorRunner,
        InterceptorChain(
            BuiltInterceptor(spec, spec.build(made), spec.name)
            for plugin in CREDENTIALS
            for spec in plugin.moorage_credential_interceptors()
        ),
    )
    driver = OrdinaryDriver(made)
    made.provide(TaskDriverRegistry, Drivers(ordinary=driver))
    (source,) = (spec.build(made) for spec in mcp_plugin.moorage_tool_sources())
    async with AsyncExitStack() as stack:
        for life in (*mcp_plugin.moorage_lifecycle(), *oauth.moorage_lifecycle()):
            await stack.enter_async_context(life.open(made))
        yield CredentialGateway(made, extensions, source, driver, warnings)


class Recorder:
    """What a ``recorder`` server saw, and what it is told to do."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def records(self) -> list[dict[str, Any]]:
        async with httpx.AsyncClient() as client:
            records: list[dict[str, Any]] = (await client.get(f"{self.url}/seen")).json()
        return records

    async def refuse(self, *authorizations: str) -> None:
        async with httpx.AsyncClient() as client:
            await client.put(f"{self.url}/refuse", json=authorizations)

    async def redirect(self, url: str) -> None:
        async with httpx.AsyncClient() as client:
            await client.put(f"{self.url}/redirect", json=url)


def header(record: Mapping[str, Any], name: str = "authorization") -> list[str]:
    """All values that a request carried under a name, in any spelling."""
    return [value for key, value in record["headers"] if key.lower() == name.lower()]
