"""Answers to tasks that require input: checked, recorded, then sent at most once (TASK-16)."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, cast

from moorage.contract.errors import (
    CredentialDenied,
    DriverError,
    InvalidAnswer,
    NotSupported,
    ProtocolViolation,
    SubmitRejected,
)
from moorage.contract.stores import AnswerRecord, AnswerState, TaskRecord, TaskRepository
from moorage.contract.tasks import RespondingDriver, TaskAnswer, TaskStatus
from moorage.process_exit import EXITS
from moorage.tasks.asking import Redact
from moorage.tasks.bounds import ID_LIMIT_CHARACTERS, PAYLOAD_LIMIT_BYTES, serialise
from moorage.tasks.calls import CallRunner
from moorage.tasks.drivers import NamedDriver, checked_snapshot, contained, ref_of
from moorage.tasks.schema import check_answer
from moorage.tasks.text import bounded_error, is_storable
from moorage.tasks.timing import LeasePlan


class Answering:
    """Takes one answer from its check to its record and, once, to the remote."""

    def __init__(
        self,
        repository: TaskRepository,
        drivers: Mapping[str, NamedDriver],
        plan: LeasePlan,
        calls: CallRunner,
        redact: Redact,
    ) -> None:
        self._repository = repository
        self._drivers = drivers
        self._plan = plan
        self._calls = calls
        self._redact = redact

    async def respond(self, task: TaskRecord, answer_id: str, response: Any) -> AnswerRecord:
        """The answer as recorded after it was sent. One whose id is known is returned as it stands, and
        nothing is sent.

        Raises `Conflict` where the task requires no input, `NotSupported` where it takes no answers,
        `InvalidAnswer` where the response does not fit the request's schema or is too large, and the
        driver's error where sending failed; what became of the answer stays on record.
        """
        _check_id(answer_id)
        named = self._drivers.get(task.driver)
        if named is None:
            raise DriverError(f"the task driver {task.driver!r} is not installed here")
        if not isinstance(named.driver, RespondingDriver):
            raise NotSupported(f"the driver {task.driver!r} takes no answers")
        text = _response_text(response)
        if task.status is TaskStatus.INPUT_REQUIRED:
            await check_answer(task.input_required, json.loads(text))
        answer, made_now = await self._repository.record_answer(task.task_id, answer_id, response_json=text)
        if not made_now:
            return answer
        # In a task of its own: a caller who leaves must not leave the record without its end.
        sending = self._calls.start(self._send(task, named, answer))
        try:
            return await asyncio.shield(sending)
        except asyncio.CancelledError:
            await self._calls.finish(sending, self._plan.compensation_seconds)
            raise

    async def _send(self, task: TaskRecord, named: NamedDriver, answer: AnswerRecord) -> AnswerRecord:
        driver = cast("RespondingDriver", named.driver)
        ref = ref_of(task)

        async def call() -> None:
            with named.account.call():
                reply = await driver.respond(ref, TaskAnswer(answer.answer_id, answer.response))
            checked_snapshot(reply, named, ref.remote_id)

        try:
            await self._calls.run(call(), self._plan.call_seconds)
        except EXITS:
            raise
        except asyncio.CancelledError:
            await self._finish(answer, "unknown", "the gateway stopped while the answer was being sent")
            raise
        except BaseException as exc:
            error = contained(exc, named)
            await self._finish(answer, _state_after(exc), self._redact(bounded_error(error)))
            raise error from (exc if error is not exc else None)
        return await self._finish(answer, "sent", None)

    async def _finish(self, answer: AnswerRecord, state: AnswerState, error: str | None) -> AnswerRecord:
        await self._repository.finish_answer(answer.task_id, answer.answer_id, state=state, error=error)
        return AnswerRecord(
            task_id=answer.task_id,
            answer_id=answer.answer_id,
            state=state,
            response=answer.response,
            error=error,
            created_at=answer.created_at,
        )


def _state_after(exc: BaseException) -> AnswerState:
    certain = isinstance(exc, (NotSupported, SubmitRejected, CredentialDenied))
    return "failed" if certain or getattr(exc, "sent", None) is False else "unknown"


def _check_id(answer_id: str) -> None:
    if not answer_id.strip() or len(answer_id) > ID_LIMIT_CHARACTERS or not is_storable(answer_id):
        raise InvalidAnswer(f"an answer id is non-blank text of at most {ID_LIMIT_CHARACTERS} characters")


def _response_text(response: Any) -> str:
    try:
        text = serialise("the answer", response)
    except ProtocolViolation as exc:
        raise InvalidAnswer(str(exc)) from exc
    if len(text) > PAYLOAD_LIMIT_BYTES:
        raise InvalidAnswer(f"the answer is larger than {PAYLOAD_LIMIT_BYTES} bytes")
    return text
