"""Ask a driver about one task, whatever it does in answer (TASK-8, TASK-9, PLUG-7)."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from moorage.contract.errors import NotSupported, PluginTimeout, ProtocolViolation
from moorage.contract.observing import WorkKind
from moorage.contract.stores import TaskOutcome
from moorage.contract.tasks import TaskRef, TaskSnapshot
from moorage.process_exit import EXITS
from moorage.settings import TaskSettings
from moorage.tasks.bounds import protocol_failure, to_outcome
from moorage.tasks.calls import SelfCancelled
from moorage.tasks.drivers import NamedDriver, checked_snapshot, contained, violation_text
from moorage.tasks.observing import Observe, unobserved
from moorage.tasks.text import bounded_error
from moorage.tasks.timing import capped_hint

Redact = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Reply:
    """What a driver's call came to: an outcome (a permanent failure included), or an error to retry.

    ``final``: repeating the call is pointless. ``hint_seconds`` is the remote's poll hint.
    """

    outcome: TaskOutcome | None = None
    hint_seconds: float | None = None
    error: str | None = None
    final: bool = False

    @property
    def terminal(self) -> bool:
        return self.outcome is not None and self.outcome.status.terminal


class Asker:
    """Turns a driver's calls into `Reply`; only a true cancellation and a process exit pass through."""

    def __init__(self, settings: TaskSettings, redact: Redact, observe: Observe = unobserved) -> None:
        self._settings = settings
        self._redact = redact
        self._observe = observe

    async def status(self, named: NamedDriver, ref: TaskRef) -> Reply:
        """Poll."""
        return await self._observed("poll", named, named.driver.get_status, ref)

    async def cancel(self, named: NamedDriver, ref: TaskRef) -> Reply:
        """Ask for the cancellation."""
        return await self._observed("cancel", named, named.driver.cancel, ref)

    async def _observed(
        self,
        kind: WorkKind,
        named: NamedDriver,
        call: Callable[[TaskRef], Awaitable[TaskSnapshot]],
        ref: TaskRef,
    ) -> Reply:
        about = {"task_id": ref.task_id, "server": ref.server}
        with self._observe(kind, named.name, about) as ended:
            reply = await self._ask(named, call, ref)
            ended("ok" if reply.error is None else "error")
            return reply

    async def _ask(
        self, named: NamedDriver, call: Callable[[TaskRef], Awaitable[TaskSnapshot]], ref: TaskRef
    ) -> Reply:
        try:
            with named.account.call():
                answer = await call(ref)
            snapshot = checked_snapshot(answer, named, ref.remote_id)
            outcome = to_outcome(snapshot, self._settings)
            return Reply(outcome=outcome, hint_seconds=capped_hint(snapshot.poll_after_seconds))
        except EXITS:
            raise
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                raise
            return self.failed(SelfCancelled(), named, ref.server)
        except BaseException as exc:
            return self.failed(exc, named, ref.server)

    def unanswered(self, reason: str, named: NamedDriver) -> Reply:
        return self.failed(PluginTimeout(reason, plugin=named.plugin), named, "")

    def failed(self, exc: BaseException, named: NamedDriver, server: str) -> Reply:
        if isinstance(exc, ProtocolViolation):
            return Reply(outcome=protocol_failure(exc, self._redact(violation_text(exc, server))))
        error = self._redact(bounded_error(contained(exc, named)))
        return Reply(error=error, final=isinstance(exc, NotSupported))
