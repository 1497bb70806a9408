"""One submission: intent, remote submit, handle, and compensation where that fails (TASK-3, 4, 5, 22, 23)."""

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NoReturn

from moorage.contract.clock import Clock
from moorage.contract.errors import (
    CredentialDenied,
    MoorageError,
    NotSupported,
    PluginError,
    ProtocolViolation,
    RemoteTaskConflict,
    StoreUnavailable,
    SubmitRejected,
)
from moorage.contract.stores import TaskOutcome, TaskRepository
from moorage.contract.tasks import SubmitCall, SubmittedTask, TaskHandle, TaskRef, TaskStatus
from moorage.process_exit import EXITS
from moorage.settings import TaskSettings
from moorage.tasks.asking import Redact
from moorage.tasks.bounds import attention_of, to_outcome
from moorage.tasks.calls import CallRunner, SelfCancelled, outcome_of
from moorage.tasks.drivers import (
    NamedDriver,
    background_context,
    check_remote_id,
    checked_snapshot,
    contained,
    violation_text,
)
from moorage.tasks.text import bounded_error, describe
from moorage.tasks.timing import LeasePlan, capped_hint

_log = logging.getLogger(__name__)

UNKNOWN = "submission_unknown"
COMPENSATED = "submission_cancelled"
ORPHANED = "submission_orphaned"


@dataclass(frozen=True, slots=True)
class Ports:
    """What every submission of one service shares."""

    repository: TaskRepository
    settings: TaskSettings
    plan: LeasePlan
    clock: Clock
    calls: CallRunner
    redact: Redact


class Submission:
    """Carries one call from its intent row to its handle row, or cleans up after it."""

    def __init__(self, ports: Ports, named: NamedDriver, call: SubmitCall, token: str) -> None:
        self._ports = ports
        self._named = named
        self._call = call
        self._token = token

    async def run(self) -> SubmittedTask:
        """Submit once and commit the handle. Whatever goes wrong is raised as it came, after the row says
        the truth and a remote task that nobody would track has been cancelled."""
        handle = await self._submit()
        try:
            outcome = self._accept(handle)
        except (ProtocolViolation, PluginError) as exc:
            contained(exc, self._named)
            await self._compensate(handle.remote_id, exc)
            raise
        await self._record(handle, outcome)
        return SubmittedTask(
            task_id=self._call.task_id, task_name=self._call.binding.task_name, status=outcome.status
        )

    # --- the remote submit

    async def _submit(self) -> TaskHandle:
        ports = self._ports
        task = ports.calls.start(self._ask())
        try:
            done = await ports.calls.wait({task}, ports.plan.call_seconds)
        except asyncio.CancelledError as exc:
            await self._abandon(task, exc)
            raise
        if not done:
            task.cancel()
            await self._fail_unknown(TimeoutError(f"no answer within {ports.plan.call_seconds:g} seconds"))
        try:
            return outcome_of(task)
        except BaseException as exc:
            await self._judge(exc)

    async def _ask(self) -> TaskHandle:
        with self._named.account.call():
            handle = await self._named.driver.submit(self._call)
        if not isinstance(handle, TaskHandle):
            raise PluginError(
                f"answered a submit with {type(handle).__name__}, not a TaskHandle", plugin=self._named.plugin
            )
        return handle

    async def _judge(self, exc: BaseException) -> NoReturn:
        """The submit raised: nothing was sent, a bad reply, or nobody knows."""
        if isinstance(exc, EXITS):
            raise exc
        if _nothing_sent(exc):
            await self._quietly(self._ports.repository.discard_intent(self._call.task_id, self._token))
            raise exc
        if isinstance(exc, ProtocolViolation):
            if exc.remote_id is not None:
                await self._compensate(exc.remote_id, exc)
            else:
                await self._fail(self._said(exc), exc.code, None)
            raise exc
        await self._fail_unknown(exc)

    async def _abandon(self, task: "asyncio.Task[TaskHandle]", cause: asyncio.CancelledError) -> None:
        """The caller left while the submit was under way: for a short while its answer may still tell
        which remote task has to be cancelled."""
        calls, plan = self._ports.calls, self._ports.plan
        if await calls.finish(task, plan.compensation_seconds):
            try:
                handle = outcome_of(task)
            except BaseException as exc:
                with suppress(Exception, SelfCancelled):
                    await self._judge(exc)
                return
            await self._compensate(handle.remote_id, cause)
            return
        task.cancel()
        reason = "the caller was cancelled before the server had answered the submit"
        await self._fail(f"{reason}; whether it was accepted is unknown", UNKNOWN, None)

    async def _fail_unknown(self, exc: BaseException) -> NoReturn:
        error = contained(exc, self._named)
        reason = f"whether the server accepted the submit is unknown: {self._said(error)}"
        await self._fail(reason, UNKNOWN, None)
        raise error from (exc if error is not exc else None)

    # --- the handle

    def _accept(self, handle: TaskHandle) -> TaskOutcome:
        check_remote_id(handle.remote_id)
        snapshot = checked_snapshot(handle.snapshot, self._named, handle.remote_id)
        return to_outcome(snapshot, self._ports.settings)

    async def _record(self, handle: TaskHandle, outcome: TaskOutcome) -> None:
        calls, plan = self._ports.calls, self._ports.plan
        task = calls.start(self._store(handle, outcome))
        try:
            done = await calls.wait({task}, plan.margin_seconds)
        except asyncio.CancelledError as exc:
            await self._compensate(handle.remote_id, exc, storing=task)
            raise
        if not done:
            slow = StoreUnavailable("the store did not record the submission in time")
            await self._compensate(handle.remote_id, slow, storing=task)
            raise slow
        try:
            landed = outcome_of(task)
        except RemoteTaskConflict:
            await self._disown()
            raise
        except BaseException as exc:
            await self._compensate(handle.remote_id, exc)
            raise
        if not landed:
            late = StoreUnavailable("the submission took longer than its lease; it is not tracked")
            await self._compensate(handle.remote_id, late)
            raise late

    async def _disown(self) -> None:
        """Another task owns the remote one, which therefore is not ours to cancel (TASK-5)."""
        await self._quietly(self._ports.repository.discard_intent(self._call.task_id, self._token))

    async def _store(self, handle: TaskHandle, outcome: TaskOutcome) -> bool:
        kind, mark = attention_of(outcome)
        first = self._ports.clock.now() + timedelta(seconds=self._first_wait(handle, outcome))
        return await self._ports.repository.record_handle(
            self._call.task_id,
            self._token,
            remote_id=handle.remote_id,
            outcome=outcome,
            next_poll_at=None if outcome.status.terminal else first,
            attention=kind,
            attention_fingerprint=mark,
        )

    def _first_wait(self, handle: TaskHandle, outcome: TaskOutcome) -> float:
        hint = capped_hint(handle.snapshot.poll_after_seconds)
        if hint is not None:
            return hint
        # Work that has just begun is polled at once, so that quick work is noticed quickly.
        waiting = outcome.status is TaskStatus.INPUT_REQUIRED
        return self._ports.settings.input_required_interval_seconds if waiting else 0.0

    # --- cleaning up

    async def _compensate(
        self, remote_id: str, cause: BaseException, storing: "asyncio.Task[bool] | None" = None
    ) -> None:
        """Cancel the remote task once, in bounded time, through any further cancellation of the caller, and
        let the row say so. Never raises: the cause is the caller's to raise."""
        calls, plan = self._ports.calls, self._ports.plan
        work = calls.start(self._cancel_remote(remote_id, cause, storing))
        # The work bounds its own steps; this one covers their sum.
        if not await calls.finish(work, plan.compensation_seconds * 3):
            work.cancel()

    async def _cancel_remote(
        self, remote_id: str, cause: BaseException, storing: "asyncio.Task[bool] | None"
    ) -> None:
        landed = False
        if storing is not None:
            try:
                landed = await self._landed(storing)
            except RemoteTaskConflict:
                await self._disown()
                return
        trouble = await self._try_cancel(remote_id)
        if landed and trouble is not None:
            # The row is tracked after all, so the poller can keep trying to cancel it (TASK-17).
            await self._quietly(self._ports.repository.request_cancel(self._call.task_id))
        if not landed:
            await self._fail_cancelled(remote_id, cause, trouble)

    async def _fail_cancelled(self, remote_id: str, cause: BaseException, trouble: str | None) -> None:
        why = self._said(cause)
        if trouble is None:
            error, code = f"{why}; the remote task was cancelled", COMPENSATED
        else:
            error, code = f"{why}; the remote task could not be cancelled and may go on: {trouble}", ORPHANED
            _log.warning("task %s: %s", self._call.task_id, error)
        await self._fail(error, cause.code if isinstance(cause, ProtocolViolation) else code, remote_id)

    async def _try_cancel(self, remote_id: str) -> str | None:
        """None where the remote took the cancel, else why not."""
        ref = TaskRef(
            task_id=self._call.task_id,
            server=self._call.server,
            binding=self._call.binding,
            remote_id=remote_id,
            context=background_context(self._call.context),
        )
        try:
            await self._ports.calls.run(self._cancel_call(ref), self._ports.plan.compensation_seconds)
        except EXITS:
            raise
        except BaseException as exc:
            return self._said(contained(exc, self._named))
        return None

    async def _cancel_call(self, ref: TaskRef) -> object:
        with self._named.account.call():
            return await self._named.driver.cancel(ref)

    async def _landed(self, storing: "asyncio.Task[bool]") -> bool:
        """Whether the handle was committed after all. Raises `RemoteTaskConflict`."""
        if not await self._ports.calls.finish(storing, self._ports.plan.compensation_seconds / 4):
            storing.cancel()
            return False
        try:
            return outcome_of(storing)
        except RemoteTaskConflict:
            raise
        except Exception:
            return False

    async def _fail(self, error: str, code: str, remote_id: str | None) -> None:
        keep = remote_id if remote_id is not None and _fits(remote_id) else None
        await self._quietly(self._fail_row(bounded_error(error), code, keep))

    async def _fail_row(self, error: str, code: str, remote_id: str | None) -> None:
        # Without the token: the lease may have lapsed, and the truth is worth more than its order.
        fail, task_id = self._ports.repository.fail_intent, self._call.task_id
        try:
            await fail(task_id, None, error=error, error_code=code, remote_id=remote_id)
        except RemoteTaskConflict:
            await fail(task_id, None, error=error, error_code=code)

    async def _quietly(self, change: Coroutine[Any, Any, object]) -> None:
        """Make a change that must not hide the error under way. Where it fails, the lapse of the intent's
        lease will fail the row (TASK-22)."""
        work = self._ports.calls.start(change)
        if not await self._ports.calls.finish(work, self._ports.plan.compensation_seconds):
            work.cancel()
            _log.warning("task %s: the store did not answer in time", self._call.task_id)
        elif not work.cancelled() and (exc := work.exception()) is not None:
            _log.warning("task %s: the store refused a change: %s", self._call.task_id, describe(exc))

    def _said(self, exc: BaseException) -> str:
        if isinstance(exc, asyncio.CancelledError):
            return "the caller was cancelled while the submission was being recorded"
        if not isinstance(exc, MoorageError):
            # A database's own message may quote the statement's values.
            return f"the submission could not be recorded ({type(exc).__name__})"
        if isinstance(exc, ProtocolViolation):
            return self._ports.redact(violation_text(exc, self._call.server))
        return self._ports.redact(bounded_error(exc) if str(exc) else describe(exc))


def _fits(remote_id: str) -> bool:
    try:
        check_remote_id(remote_id)
    except ProtocolViolation:
        return False
    return bool(remote_id.strip())


def _nothing_sent(exc: BaseException) -> bool:
    """Whether the remote certainly got or accepted nothing (TASK-22)."""
    if isinstance(exc, (SubmitRejected, CredentialDenied, NotSupported)):
        return True
    return getattr(exc, "sent", None) is False
