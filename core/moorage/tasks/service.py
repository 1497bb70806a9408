"""The task service: what the gateway's tools, API and CLI ask of durable tasks (TASK)."""

import secrets
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Any

from moorage.contract.clock import Clock
from moorage.contract.errors import (
    AmbiguousName,
    ConfigError,
    DriverError,
    NotFound,
    StoreUnavailable,
    SubmitRejected,
)
from moorage.contract.identity import CallContext, Principal
from moorage.contract.stores import AnswerRecord, NewTask, Page, TaskFilter, TaskRecord, TaskRepository
from moorage.contract.tasks import SubmitCall, SubmittedTask, TaskBinding, TaskStatus
from moorage.settings import TaskSettings
from moorage.tasks.answers import Answering
from moorage.tasks.asking import Redact
from moorage.tasks.bounds import ID_LIMIT_CHARACTERS, SERVER_NAME_LIMIT_CHARACTERS
from moorage.tasks.calls import CallRunner, outcome_of
from moorage.tasks.drivers import NamedDriver
from moorage.tasks.submission import Ports, Submission
from moorage.tasks.text import is_storable
from moorage.tasks.timing import lease_plan

_ACTIVE = frozenset(status for status in TaskStatus if not status.terminal)


class TaskService:
    """Submits, lists, cancels and answers tasks; a `moorage.contract.TaskSubmitter`.

    ``wake`` is called when work may be due for the scheduler or the notifier. ``server_allowed`` returns
    why nothing new may be submitted to a server, or None. ``redact`` takes known secrets out of errors
    before they are stored. Somebody else's task is `NotFound`; administrators see all.
    """

    def __init__(
        self,
        *,
        repository: TaskRepository,
        drivers: Mapping[str, NamedDriver],
        settings: TaskSettings,
        clock: Clock,
        owner: str,
        wake: Callable[[], None],
        server_allowed: Callable[[str], str | None] = lambda server: None,
        redact: Redact = str,
    ) -> None:
        self._repository = repository
        self._drivers = drivers
        self._owner = owner
        self._wake = wake
        self._server_allowed = server_allowed
        self._plan = lease_plan(settings)
        self._calls = CallRunner(clock)
        self._ports = Ports(repository, settings, self._plan, clock, self._calls, redact)
        self._answering = Answering(repository, drivers, self._plan, self._calls, redact)

    async def submit(
        self, *, server: str, binding: TaskBinding, arguments: Mapping[str, Any], context: CallContext
    ) -> SubmittedTask:
        """Submit and track; returns once the row is committed (TASK-3).

        Raises `ConfigError` for an impossible name, `SubmitRejected` where the server takes no new tasks,
        the driver's own errors, `RemoteTaskConflict` (TASK-5), `StoreUnavailable`.
        """
        _check_name("task name", binding.task_name, ID_LIMIT_CHARACTERS)
        _check_name("server name", server, SERVER_NAME_LIMIT_CHARACTERS)
        if (reason := self._server_allowed(server)) is not None:
            raise SubmitRejected(reason)
        named = self._driver(binding.driver)
        call = SubmitCall(
            task_id=secrets.token_hex(16),
            server=server,
            binding=binding,
            arguments=arguments,
            context=context,
        )
        if binding.sticky:
            # Another replica must not take the task over before our scheduler's first heartbeat.
            await self._repository.heartbeat(self._owner, self._plan.lease_seconds)
        token = await self._create_intent(self._intent(call))
        try:
            return await Submission(self._ports, named, call, token).run()
        finally:
            # A failure may have left an event to deliver, a success has left a poll.
            self._wake()

    async def get(self, principal: Principal, task_id: str, *, thread_id: str | None = None) -> TaskRecord:
        """The task, of that thread where one is given. Raises `NotFound`."""
        return _visible(await self._repository.get(task_id), principal, task_id, thread_id)

    async def list(self, principal: Principal, filter: TaskFilter) -> Page[TaskRecord]:  # noqa: A002
        """Newest first; the principal's own, or whatever an administrator asks for."""
        mine = filter if principal.is_admin else replace(filter, user_id=principal.user_id)
        return await self._repository.list(mine)

    async def cancel(self, principal: Principal, task_id: str, *, thread_id: str | None = None) -> TaskRecord:
        """Record the request (TASK-17); returns the task as it is then. Raises `NotFound`."""
        await self.get(principal, task_id, thread_id=thread_id)
        task = _visible(await self._repository.request_cancel(task_id), principal, task_id, thread_id)
        self._wake()
        return task

    async def cancel_by_name_or_id(self, context: CallContext, name: str) -> TaskRecord:
        """Cancel one of the thread's own tasks (TASK-20).

        A name means the task under way that has it, if it is the only one. Raises `NotFound` and
        `AmbiguousName`, which lists the matches.
        """
        mine = TaskFilter(
            user_id=context.principal.user_id, thread_id=context.thread_id, name_or_id=name, limit=50
        )
        matches = (await self._repository.list(replace(mine, statuses=_ACTIVE))).items
        if not matches:
            matches = (await self._repository.list(mine)).items
        exact = [task for task in matches if task.task_id == name]
        found = exact or list(matches)
        if not found:
            raise NotFound(f"this thread has no task {name!r}")
        if len(found) > 1:
            raise AmbiguousName(name, [f"{task.task_id} ({task.status}, {_when(task)})" for task in found])
        return await self.cancel(context.principal, found[0].task_id, thread_id=context.thread_id)

    async def respond(
        self,
        principal: Principal,
        task_id: str,
        answer_id: str,
        response: Any,
        *,
        thread_id: str | None = None,
    ) -> AnswerRecord:
        """Answer an ``input_required`` task (TASK-16); see `Answering.respond` for what is raised."""
        task = await self.get(principal, task_id, thread_id=thread_id)
        try:
            return await self._answering.respond(task, answer_id, response)
        finally:
            self._wake()

    async def aclose(self) -> None:
        """End what submissions have left behind, in bounded time."""
        await self._calls.aclose()

    # --- parts

    def _driver(self, name: str) -> NamedDriver:
        try:
            return self._drivers[name]
        except KeyError:
            raise DriverError(
                f"the task driver {name!r} is not installed here; install the plugin that provides it"
            ) from None

    def _new_id(self) -> str:
        # Ordered by time, so that a large table's index grows at its end; the rest is 80 random bits.
        milliseconds = int(self._ports.clock.now().timestamp() * 1_000)
        return f"{milliseconds:012x}{secrets.token_hex(10)}"

    def _intent(self, call: SubmitCall) -> NewTask:
        return NewTask(
            task_id=call.task_id,
            task_name=call.binding.task_name,
            user_id=call.context.principal.user_id,
            thread_id=call.context.thread_id,
            run_id=call.context.run_id,
            assistant_id=call.context.assistant_id,
            server_name=call.server,
            driver=call.binding.driver,
            binding=call.binding.data,
            lease_seconds=self._plan.lease_seconds,
            holder=self._owner if call.binding.sticky else None,
        )

    async def _create_intent(self, intent: NewTask) -> str:
        work = self._calls.start(self._repository.create_intent(intent))
        bound = self._plan.compensation_seconds
        try:
            done = await self._calls.wait({work}, self._plan.margin_seconds)
        except BaseException:
            # Nothing has been sent yet, so no row may remain (TASK-22).
            if await self._calls.finish(work, bound) and not work.cancelled() and not work.exception():
                undo: Coroutine[Any, Any, bool] = self._repository.discard_intent(
                    intent.task_id, work.result()
                )
                await self._calls.finish(self._calls.start(undo), bound)
            raise
        if not done:
            work.cancel()
            raise StoreUnavailable("the store did not take the submission in time; nothing was sent")
        return outcome_of(work)


def _visible(
    task: TaskRecord | None, principal: Principal, task_id: str, thread_id: str | None
) -> TaskRecord:
    if (
        task is None
        or (task.user_id != principal.user_id and not principal.is_admin)
        or (thread_id is not None and task.thread_id != thread_id)
    ):
        raise NotFound(f"there is no task {task_id!r}")
    return task


def _check_name(what: str, name: str, limit: int) -> None:
    if not name.strip():
        raise ConfigError(f"the {what} is blank")
    if len(name) > limit:
        raise ConfigError(f"the {what} has {len(name)} characters; at most {limit} are allowed")
    if not is_storable(name):
        raise ConfigError(f"the {what} holds a NUL or a lone surrogate")


def _when(task: TaskRecord) -> str:
    return task.created_at.isoformat(timespec="seconds")
