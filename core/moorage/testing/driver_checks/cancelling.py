"""Cancel and respond calls (TASK-16, TASK-17)."""

from typing import Any, cast

from moorage.contract import (
    NotSupported,
    ProtocolViolation,
    RespondingDriver,
    TaskAnswer,
    TaskRef,
    TaskStatus,
)
from moorage.testing.checks import NotApplicable, Shortfall, check, outcome, told
from moorage.testing.driver_bench import (
    CALL_SECONDS,
    CANARY,
    DriverBench,
    DriverSubject,
    snapshot,
    violation,
)
from moorage.testing.remote import Operation, Said, Trouble, Wire


class CancelChecks:
    """Checks of ``cancel`` and ``respond``."""

    @check("TASK-17", rule="a cancel reaches the remote, about this very job, and tells what became of it")
    async def test_a_cancel_reaches_the_remote(self: DriverSubject, bench: DriverBench) -> None:
        ref, other = await bench.submitted(1), await bench.submitted(2)
        got = snapshot(await bench.cancel(ref), "the remote cancels at once")
        if bench.remote.count(Operation.CANCEL, ref.remote_id) != 1:
            raise Shortfall("no cancel of this job arrived at the remote")
        if bench.remote.jobs[other.remote_id].status.terminal:
            raise Shortfall("another job was cancelled")
        after = got if got.status.terminal else snapshot(await bench.status(ref), "the job is cancelled")
        if after.status is not TaskStatus.CANCELLED:
            raise Shortfall(f"a job that is cancelled is told as {after.status.value}")

    @check("TASK-17", rule="a mere acknowledgement is no end: the snapshot stays non-terminal")
    async def test_an_acknowledged_cancel(self: DriverSubject, bench: DriverBench) -> None:
        if not self.cancels_by_acknowledgement:
            raise NotApplicable("a cancel is final at once (cancels_by_acknowledgement = False)")
        bench.remote.cancel_is_acknowledged_only = True
        ref = await bench.submitted()
        got = snapshot(await bench.cancel(ref), "the remote only acknowledges the cancel")
        if got.status.terminal:
            raise Shortfall(f"it is told as {got.status.value}, while the job still runs")
        job = bench.remote.jobs[ref.remote_id]
        job.status, job.result = TaskStatus.COMPLETED, {"answer": CANARY}
        late = snapshot(await bench.status(ref), "the job completed in spite of the cancel")
        if late.status is not TaskStatus.COMPLETED:
            raise Shortfall(f"a job that completed in spite of the cancel is told as {late.status.value}")

    @check("TASK-17", rule="a cancel that comes too late tells how the job really ended")
    async def test_a_cancel_that_comes_too_late(self: DriverSubject, bench: DriverBench) -> None:
        ref = await bench.submitted()
        job = bench.remote.jobs[ref.remote_id]
        job.status, job.result = TaskStatus.COMPLETED, {"answer": CANARY}
        answer = await bench.cancel(ref)
        if isinstance(answer, ProtocolViolation):
            raise Shortfall(f"it raised {told(answer)}, and the completed task would fail")
        if getattr(answer, "status", None) in (TaskStatus.CANCELLED, TaskStatus.FAILED):
            raise Shortfall(f"a job that has completed is told as {answer.status.value}")

    @check("TASK-17", rule="a cancel may be repeated")
    async def test_a_cancel_may_be_repeated(self: DriverSubject, bench: DriverBench) -> None:
        ref = await bench.submitted()
        for number in (1, 2, 3):
            answer = await bench.cancel(ref)
            if isinstance(answer, ProtocolViolation):
                raise Shortfall(f"cancel {number} raised {told(answer)}") from answer
            snapshot(answer, f"cancel {number} was sent")

    @check("TASK-16", rule="respond sends the answer once, unchanged, to this very job")
    async def test_an_answer_arrives_once(self: DriverSubject, bench: DriverBench) -> None:
        ref, other = await _asking(bench, 1), await _asking(bench, 2)
        got = snapshot(await _respond(bench, ref, {"choice": CANARY}), "an answer was sent")
        arrived = bench.remote.jobs[ref.remote_id].answers
        if len(arrived) != 1 or CANARY not in repr(arrived[0]):
            raise Shortfall(f"the remote got {len(arrived)} answers: {told(arrived)}")
        if bench.remote.jobs[other.remote_id].answers:
            raise Shortfall("the answer reached another job")
        if got.status is not TaskStatus.WORKING:
            raise Shortfall(f"a job that goes on is told as {got.status.value}")

    @check("TASK-16", rule="an answer whose reply is lost is not sent again, and the failure is told")
    async def test_a_lost_reply_to_an_answer(self: DriverSubject, bench: DriverBench) -> None:
        ref = await _asking(bench)
        bench.remote.plan(Operation.RESPOND, Trouble.LOST)
        answer = await _respond(bench, ref, {"choice": CANARY})
        if (sent := bench.remote.count(Operation.RESPOND)) != 1:
            raise Shortfall(f"the answer was sent {sent} times")
        if not isinstance(answer, Exception):
            raise Shortfall(f"it came to {told(answer)}")

    @check("TASK-9", "TASK-16", rule="a malformed reply to an answer is a ProtocolViolation")
    async def test_a_garbled_reply_to_an_answer(self: DriverSubject, bench: DriverBench) -> None:
        ref = await _asking(bench)
        for reply in self.garbled(Said(Operation.RESPOND, ref.remote_id, TaskStatus.WORKING)):
            bench.remote.plan(Operation.RESPOND, Wire(reply))
            answer = await _respond(bench, ref, {"choice": CANARY})
            violation(answer, f"an answer was answered with {told(reply)}")


async def _asking(bench: DriverBench, number: int = 1) -> TaskRef:
    if not isinstance(bench.driver, RespondingDriver):
        raise NotApplicable("the driver takes no answers: it has no respond")
    ref = await bench.submitted(number)
    job = bench.remote.jobs[ref.remote_id]
    job.status, job.input_required = TaskStatus.INPUT_REQUIRED, {"message": "which?"}
    return ref


async def _respond(bench: DriverBench, ref: TaskRef, response: Any) -> Any:
    driver = cast("RespondingDriver", bench.driver)
    answer = await outcome(CALL_SECONDS, driver.respond(ref, TaskAnswer("answer-1", response)), "respond")
    if isinstance(answer, NotSupported):
        raise NotApplicable(f"this binding takes no answers: {answer}")
    return answer
