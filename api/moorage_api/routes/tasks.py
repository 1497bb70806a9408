"""Durable tasks of a thread (API-3)."""

from typing import Any

import msgspec
from litestar import Router, get, post

from moorage.contract.errors import StoreUnavailable
from moorage_api.routes.documented import problems
from moorage_api.schemas.ids import Cursor, Limit, TaskId, ThreadId
from moorage_api.schemas.tasks import TaskDetail, TaskPage, TaskRow
from moorage_api.wiring import GatewayDep, PrincipalDep


def _service(gateway: Any) -> Any:
    """Raises `StoreUnavailable` that says why there is no task runtime (TASK-14)."""
    if gateway.tasks is None:
        raise StoreUnavailable(f"durable tasks are not available: {gateway.tasks_unavailable}")
    return gateway.tasks


@get("/", summary="List a thread's tasks", operation_id="list_tasks", responses=problems(404))
async def list_tasks(
    gateway: GatewayDep,
    principal: PrincipalDep,
    thread_id: ThreadId,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> TaskPage:
    """Newest first."""
    page = await _service(gateway).list(principal, thread_id, limit=limit, cursor=cursor)
    rows = [msgspec.convert(row, TaskRow, from_attributes=True) for row in page.items]
    return TaskPage(rows, page.next_cursor)


@get("/{task_id:str}", summary="One task", operation_id="get_task", responses=problems(404))
async def get_task(
    gateway: GatewayDep, principal: PrincipalDep, thread_id: ThreadId, task_id: TaskId
) -> TaskDetail:
    """With its result, its last errors and how its notification went."""
    return msgspec.convert(await _service(gateway).get(principal, thread_id, task_id), TaskDetail)


@post(
    "/{task_id:str}/cancel",
    status_code=202,
    summary="Ask for a task's cancellation",
    operation_id="cancel_task",
    responses=problems(404),
)
async def cancel_task(
    gateway: GatewayDep, principal: PrincipalDep, thread_id: ThreadId, task_id: TaskId
) -> TaskDetail:
    """Recorded first and performed in the background; a terminal task is returned as it is (TASK-17)."""
    return msgspec.convert(await _service(gateway).cancel(principal, thread_id, task_id), TaskDetail)


router = Router(
    "/api/threads/{thread_id:str}/mcp-tasks",
    route_handlers=[list_tasks, get_task, cancel_task],
    tags=["tasks"],
)
