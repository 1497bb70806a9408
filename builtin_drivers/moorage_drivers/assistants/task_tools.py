"""Tools that let an agent list, cancel and answer its thread's tasks (TASK-16, TASK-20)."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Protocol, runtime_checkable

from langchain_core.tools import BaseTool, StructuredTool
from langgraph.prebuilt import ToolRuntime
from pydantic import Field

from moorage.contract import (
    AnswerRecord,
    CallContext,
    GatewayContext,
    MoorageError,
    Page,
    Principal,
    TaskFilter,
    TaskRecord,
    TaskSubmitter,
)
from moorage.tasks.prompt import one_line, render_tasks

LISTED = 50


@runtime_checkable
class ThreadTasks(Protocol):
    """What these tools need of the task runtime; its service has more."""

    async def list(self, principal: Principal, filter: TaskFilter) -> Page[TaskRecord]: ...  # noqa: A002

    async def cancel_by_name_or_id(self, context: CallContext, name: str) -> TaskRecord: ...

    async def respond(
        self,
        principal: Principal,
        task_id: str,
        answer_id: str,
        response: Any,
        *,
        thread_id: str | None = None,
    ) -> AnswerRecord: ...


Runtime = ToolRuntime[Any, Any]
"""With its parameters: a bare one makes pydantic quote the context, which holds the secrets, in a warning."""


def task_tools(context: GatewayContext) -> Sequence[BaseTool]:
    """The tools where this process has a task runtime, else none (TASK-15)."""
    if not context.has(TaskSubmitter):
        return ()
    service = context.service(TaskSubmitter)
    if not isinstance(service, ThreadTasks):
        return ()
    tasks: ThreadTasks = service

    async def list_tasks(runtime: Runtime) -> str:
        call = _call(runtime)
        mine = TaskFilter(user_id=call.principal.user_id, thread_id=call.thread_id, limit=LISTED)
        return render_tasks(list((await tasks.list(call.principal, mine)).items))

    async def cancel_task(
        task: Annotated[str, Field(description="The id of the task, or its name.")], runtime: Runtime
    ) -> str:
        try:
            found = await tasks.cancel_by_name_or_id(_call(runtime), task)
        except MoorageError as error:
            return f"Nothing was cancelled: {one_line(error, 2_000)}"
        if found.status.terminal:
            return f"Task {one_line(found.task_id)} had ended already; its status is {found.status.value}."
        return f"Cancellation of task {one_line(found.task_id)} is requested; its end will be notified."

    async def respond_to_task(
        task_id: Annotated[str, Field(description="The id of the task that requires input.")],
        response: Annotated[Any, Field(description="The answer, as the task's request asks for it.")],
        runtime: Runtime,
    ) -> str:
        call = _call(runtime)
        answer_id = f"{call.run_id}:{runtime.tool_call_id or uuid.uuid4()}"
        try:
            await tasks.respond(call.principal, task_id, answer_id, response, thread_id=call.thread_id)
        except MoorageError as error:
            return f"The task was not answered: {one_line(error, 2_000)}"
        return f"The answer to task {one_line(task_id)} is accepted and will be delivered."

    return (
        StructuredTool.from_function(
            coroutine=list_tasks,
            name="list_tasks",
            description="List the background tasks of this conversation with their ids and states.",
        ),
        StructuredTool.from_function(
            coroutine=cancel_task,
            name="cancel_task",
            description="Cancel a background task of this conversation, by id or name.",
        ),
        StructuredTool.from_function(
            coroutine=respond_to_task,
            name="respond_to_task",
            description="Answer a background task of this conversation that requires input.",
        ),
    )


def _call(runtime: Runtime) -> CallContext:
    context: Any = runtime.context
    call = context.get("moorage") if isinstance(context, Mapping) else None
    if not isinstance(call, CallContext):
        raise TypeError("this tool works in a run of the gateway only")
    return call
