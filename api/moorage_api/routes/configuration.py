"""The extensions config over HTTP: read, replace, enable (ADMIN)."""

from typing import Annotated, Any

from litestar import Response, Router, get, patch, put
from litestar.params import HeaderParameter, JSONBody, QueryParameter

from moorage.config import ConfigChange
from moorage_api.auth.middleware import ROLE
from moorage_api.encoding import JsonResponse
from moorage_api.routes.documented import problems
from moorage_api.schemas.configuration import ConfigDocument, ConfigNote, ConfigReport, ServerSwitch
from moorage_api.wiring import GatewayDep

ADMIN = {ROLE: "admin"}
IfMatch = Annotated[
    str | None,
    HeaderParameter(
        name="If-Match", max_length=1_000, description="The ETag that the change was based on; else 412."
    ),
]
DryRun = Annotated[bool, QueryParameter(description="Say what would change, and write nothing.")]


@get("/", opt=ADMIN, summary="Configured servers", operation_id="get_config", responses=problems(409))
async def get_config(gateway: GatewayDep) -> Response[ConfigDocument]:
    """The servers as the file has them, every literal secret masked. The `ETag` is that of this view."""
    view = await gateway.administration.view()
    return JsonResponse(ConfigDocument(**view.config), headers=_headers(view.etag))


@put(
    "/",
    opt=ADMIN,
    summary="Replace the servers",
    operation_id="put_config",
    responses=problems(409, 412),
)
async def put_config(
    gateway: GatewayDep,
    data: JSONBody[dict[str, Any]],
    if_match: IfMatch = None,
    dry_run: DryRun = False,
) -> Response[ConfigReport]:
    """Replace all servers: `{"mcpServers": {…}}`, as a GET shows them.

    A masked secret keeps the stored one; `***` where nothing is stored, or where the secret would go
    somewhere else, answers 400. What a server's object leaves out stays as stored, null removes it, and a
    server that is not there is removed. What would be started differently is judged by the launch validators
    first. Nothing is written unless everything is acceptable.
    """
    change = await gateway.administration.replace(data, if_match=if_match, dry_run=dry_run)
    return _report(gateway, change)


@patch(
    "/",
    opt=ADMIN,
    summary="Enable or disable a server",
    operation_id="patch_config",
    responses=problems(404, 409, 412),
)
async def patch_config(
    gateway: GatewayDep,
    data: JSONBody[ServerSwitch],
    if_match: IfMatch = None,
    dry_run: DryRun = False,
) -> Response[ConfigReport]:
    """Change one server's `enabled` and leave the rest of the file as it is. Disabling always works; enabling
    validates that server, and the launch validators judge it."""
    change = await gateway.administration.set_enabled(
        data.server, data.enabled, if_match=if_match, dry_run=dry_run
    )
    return _report(gateway, change)


def _report(gateway: Any, change: ConfigChange) -> Response[ConfigReport]:
    plan = change.plan
    report = ConfigReport(
        written=change.written,
        added=plan.added,
        removed=plan.removed,
        changed=plan.changed,
        warnings=[ConfigNote(where=fault.where, message=fault.message) for fault in plan.faults],
        tasks_after_restart=gateway.administration.tasks_after_restart(plan),
    )
    return JsonResponse(report, headers=_headers(change.etag))


def _headers(etag: str) -> dict[str, str]:
    return {"ETag": etag, "Cache-Control": "no-store"}


router = Router("/api/mcp/config", route_handlers=[get_config, put_config, patch_config], tags=["operations"])
