"""Durable tasks of a thread (API-3)."""

import uuid
from typing import Any

import msgspec
from litestar import Router, get, post
from litestar.params import JSONBody

from moorage.contract.errors import StoreUnavailable
from moorage.contract.identity import Principal
from moorage.contract.stores import TaskFilter
from moorage.tasks.views import answer_row, detail, list_row
from moorage_api.problems import invalid
from moorage_api.routes.documented import problems
from moorage_api.schemas.ids import Cursor, Limit, TaskId, ThreadId
from moorage_api.schemas.tasks import TaskAnswered, TaskDetail, TaskPage, TaskResponse, TaskRow
from moorage_api.wiring import GatewayDep, PrincipalDep


async def _tasks_of(gateway: Any, principal: Principal, thread_id: str) -> Any:
    """The task service, for a thread of the caller's own.

    Raises `NotFound`, and `StoreUnavailable` that says why there is no task runtime (TASK-14).
    """
    await gateway.runs.threads.get(principal, thread_id)
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
    tasks = await _tasks_of(gateway, principal, thread_id)
    wanted = TaskFilter(user_id=principal.user_id, thread_id=thread_id, limit=limit, cursor=cursor)
    try:
        page = await tasks.list(principal, wanted)
    except ValueError:
        raise invalid("cursor", "no listing gave this cursor out") from None
    return TaskPage([msgspec.convert(list_row(task), TaskRow) for task in page.items], page.next_cursor)


@get("/{task_id:str}", summary="Get a task", operation_id="get_task", responses=problems(404))
async def get_task(
    gateway: GatewayDep, principal: PrincipalDep, thread_id: ThreadId, task_id: TaskId
) -> TaskDetail:
    """With its result, its last errors and how its notification went."""
    tasks = await _tasks_of(gateway, principal, thread_id)
    return _detail(await tasks.get(principal, task_id, thread_id=thread_id))


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
    tasks = await _tasks_of(gateway, principal, thread_id)
    return _detail(await tasks.cancel(principal, task_id, thread_id=thread_id))


@post(
    "/{task_id:str}/respond",
    status_code=200,
    summary="Answer a task that requires input",
    operation_id="respond_to_task",
    responses=problems(404, 409, 501, 502),
)
async def respond_to_task(
    gateway: GatewayDep,
    principal: PrincipalDep,
    thread_id: ThreadId,
    task_id: TaskId,
    data: JSONBody[TaskResponse],
) -> TaskAnswered:
    """Judged against the request's JSON schema, recorded, and sent at most once per ``answer_id``: repeat a
    request that got no answer with the same one (TASK-16)."""
    tasks = await _tasks_of(gateway, principal, thread_id)
    answer = await tasks.respond(
        principal, task_id, data.answer_id or str(uuid.uuid4()), data.response, thread_id=thread_id
    )
    return msgspec.convert(answer_row(answer), TaskAnswered)


def _detail(task: Any) -> TaskDetail:
    return msgspec.convert(detail(task), TaskDetail)


router = Router(
    "/api/threads/{thread_id:str}/mcp-tasks",
    route_handlers=[list_tasks, get_task, cancel_task, respond_to_task],
    tags=["tasks"],
)
