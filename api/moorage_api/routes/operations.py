"""Plugins, MCP servers and tools (API-5)."""

import msgspec
from litestar import Router, get, post

from moorage.contract.identity import CallContext
from moorage_api.auth.middleware import ROLE
from moorage_api.routes.documented import problems
from moorage_api.schemas.ids import Flag
from moorage_api.schemas.operations import (
    CacheReset,
    PluginList,
    PluginReport,
    ServerList,
    ServerReport,
    Tool,
    ToolList,
)
from moorage_api.wiring import GatewayDep, PrincipalDep

ADMIN = {ROLE: "admin"}


@get("/plugins", opt=ADMIN, summary="Plugins", operation_id="list_plugins", responses=problems())
async def list_plugins(gateway: GatewayDep) -> PluginList:
    """Every candidate with its load report (PLUG-4)."""
    return PluginList(msgspec.convert(gateway.host.as_dicts(), list[PluginReport]))


@get("/mcp/servers", opt=ADMIN, summary="MCP servers", operation_id="list_servers", responses=problems())
async def list_servers(gateway: GatewayDep, probe: Flag = False) -> ServerList:
    """Each server's state and last error; with ``probe`` they are asked anew (TOOL-2)."""
    states = await gateway.tools.servers(probe=probe)
    return ServerList(
        [
            ServerReport(
                name=state.name,
                transport=state.transport,
                enabled=state.enabled,
                state=state.state,
                tool_count=state.tool_count,
                error=state.error,
                warnings=state.warnings,
                checked_at=state.checked_at,
            )
            for state in states
        ]
    )


@post(
    "/mcp/cache/reset",
    opt=ADMIN,
    status_code=200,
    summary="Drop the tool cache",
    operation_id="reset_cache",
    responses=problems(),
)
async def reset_cache(gateway: GatewayDep) -> CacheReset:
    """In this process; the next use discovers the servers' tools anew (TOOL-7)."""
    await gateway.tools.reset()
    return CacheReset("reset")


@get("/mcp/tools", summary="Tools", operation_id="list_tools", responses=problems())
async def list_tools(gateway: GatewayDep, principal: PrincipalDep) -> ToolList:
    """The tools that the caller's runs get, as agents see them."""
    tools = await gateway.tools.tools(CallContext(principal))
    return ToolList(
        [
            Tool(
                name=tool.name,
                raw_name=tool.raw_name,
                server=tool.server,
                description=tool.description,
                input_schema=tool.input_schema,
                durable=tool.durable,
            )
            for tool in tools
        ]
    )


router = Router(
    "/api", route_handlers=[list_plugins, list_servers, reset_cache, list_tools], tags=["operations"]
)
