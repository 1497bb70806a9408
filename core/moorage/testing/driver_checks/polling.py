"""Status calls: states, payloads, hints, and replies that break the protocol (TASK-1, 2, 8, 9, 12, BOUND)."""

import math
from typing import Any

from moorage.contract import ProtocolViolation, TaskStatus
from moorage.testing.checks import NotApplicable, Shortfall, check, told
from moorage.testing.driver_bench import (
    CANARY,
    DriverBench,
    DriverSubject,
    snapshot,
    spelled,
    violation,
)
from moorage.testing.remote import Operation, Said, Trouble, Wire, twist

BAD_HINTS: tuple[Any, ...] = (0, -1, -0.5, math.inf, -math.inf, math.nan, "soon", [], {})
ODD_RESULTS: tuple[Any, ...] = (
    {"text": "ü ☃ 𝄞"},
    "plain text",
    ["a", 1, None],
    {"deep": {"er": [{"est": True}]}},
    "x" * 100_000,
)
FALSY_RESULTS: tuple[Any, ...] = (0, False, "", [], {})
ASKING = (Operation.STATUS, Operation.CANCEL)


class PollChecks:
    """Checks of ``get_status``, and of what it shares with ``cancel``."""

    @check("TASK-1", rule="each of the remote's states is told as that state")
    async def test_tells_each_state(self: DriverSubject, bench: DriverBench) -> None:
        ref = await bench.submitted()
        job = bench.remote.jobs[ref.remote_id]
        states = [TaskStatus.WORKING, TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.CANCELLED]
        for state in states:
            job.status, job.result, job.error = state, {"answer": CANARY}, f"reason {CANARY}"
            got = snapshot(await bench.status(ref), f"the job is {state.value}")
            if got.status is not state:
                raise Shortfall(f"a job that is {state.value} is told as {got.status.value}")

    @check("TASK-1", rule="a failed job keeps the remote's reason")
    async def test_tells_why_a_job_failed(self: DriverSubject, bench: DriverBench) -> None:
        ref = await bench.submitted()
        job = bench.remote.jobs[ref.remote_id]
        for reason in (f"the reason {CANARY}", f"{CANARY} " + "x" * 10_000):
            job.status, job.error = TaskStatus.FAILED, reason
            got = snapshot(await bench.status(ref), "the job has failed")
            if CANARY not in (got.error or ""):
                raise Shortfall(f"the error is {told(got.error)}")

    @check("TASK-1", "BOUND-4", rule="a result arrives as the remote gave it, never cut or turned into text")
    async def test_results_are_whole(self: DriverSubject, bench: DriverBench) -> None:
        ref = await bench.submitted()
        job = bench.remote.jobs[ref.remote_id]
        job.status = TaskStatus.COMPLETED
        for result in (*ODD_RESULTS, *FALSY_RESULTS):
            if not spelled(self, Said(Operation.STATUS, "j", TaskStatus.COMPLETED, result=result)):
                continue
            job.result = result
            got = snapshot(await bench.status(ref), f"the result is {told(result)}")
            if got.result != result or type(got.result) is not type(result):
                raise Shortfall(f"the result {told(result)} came to {told(got.result)}")

    @check("BOUND-4", rule="a NUL, a lone surrogate or NaN in a result is no reason to fall over")
    async def test_odd_results_do_no_harm(self: DriverSubject, bench: DriverBench) -> None:
        ref = await bench.submitted()
        job = bench.remote.jobs[ref.remote_id]
        job.status = TaskStatus.COMPLETED
        for result in ("nul \0", "surrogate \ud800", math.nan, {"deep": [math.inf]}):
            if not spelled(self, Said(Operation.STATUS, "j", TaskStatus.COMPLETED, result=result)):
                continue
            job.result = result
            answer = await bench.status(ref)
            if not isinstance(answer, ProtocolViolation):
                snapshot(answer, f"the result is {told(result)}")

    @check("TASK-9", rule="an unknown status is a ProtocolViolation")
    async def test_an_unknown_status(self: DriverSubject, bench: DriverBench) -> None:
        for operation in ASKING:
            ref = await bench.submitted()
            bench.remote.plan(operation, twist(status="no-such-status"))
            answer = await bench.asked(operation, ref)
            violation(answer, f"a {operation} call was answered with an unknown status")

    @check("TASK-9", rule="a malformed reply is a ProtocolViolation: retrying would not mend it")
    async def test_garbled_replies(self: DriverSubject, bench: DriverBench) -> None:
        for operation in ASKING:
            ref = await bench.submitted()
            for reply in self.garbled(Said(operation, ref.remote_id, TaskStatus.WORKING)):
                bench.remote.plan(operation, Wire(reply))
                answer = await bench.asked(operation, ref)
                violation(answer, f"a {operation} call was answered with {told(reply)}")

    @check("TASK-9", "ORD-5", rule="a reply about another job is a violation, or carries that job's id")
    async def test_a_reply_about_another_job(self: DriverSubject, bench: DriverBench) -> None:
        if not self.ids_in_replies:
            raise NotApplicable("replies carry no id (ids_in_replies = False)")
        for operation in ASKING:
            ref = await bench.submitted()
            bench.remote.plan(operation, twist(remote_id="somebody-elses"))
            answer = await bench.asked(operation, ref)
            if isinstance(answer, ProtocolViolation):
                continue
            got = snapshot(answer, f"a {operation} reply is about another job")
            if got.remote_id != "somebody-elses":
                raise Shortfall(
                    f"a {operation} reply about 'somebody-elses' is told with the id {got.remote_id!r}, "
                    "so that nobody can notice"
                )

    @check("TASK-9", rule="the remote's own id comes back unchanged where a reply carries one")
    async def test_an_honest_id_passes(self: DriverSubject, bench: DriverBench) -> None:
        ref = await bench.submitted()
        got = snapshot(await bench.status(ref), "the remote is honest")
        if got.remote_id is not None and got.remote_id != ref.remote_id:
            raise Shortfall(f"the snapshot's id is {got.remote_id!r}, the job's {ref.remote_id!r}")
        if self.ids_in_replies and got.remote_id is None:
            raise Shortfall("the snapshot has no remote_id, though the reply carries one")

    @check("TASK-9", rule="a job that the remote no longer knows has failed for good: ProtocolViolation")
    async def test_a_forgotten_job(self: DriverSubject, bench: DriverBench) -> None:
        if not self.forgets:
            raise NotApplicable("the protocol cannot say that a job is unknown (forgets = False)")
        ref = await bench.submitted()
        bench.remote.plan(Operation.STATUS, Trouble.FORGOTTEN)
        answer = await bench.status(ref)
        if getattr(answer, "status", None) is TaskStatus.FAILED:
            return
        violation(answer, "the remote no longer knows the job")

    @check("TASK-2", "TASK-9", rule="a poll hint that is not finite and positive is a ProtocolViolation")
    async def test_bad_poll_hints(self: DriverSubject, bench: DriverBench) -> None:
        if not self.poll_hints:
            raise NotApplicable("the protocol has no poll hints (poll_hints = False)")
        ref = await bench.submitted()
        for hint in BAD_HINTS:
            if not spelled(self, Said(Operation.STATUS, "j", TaskStatus.WORKING, poll_after_seconds=hint)):
                continue
            bench.remote.plan(Operation.STATUS, twist(poll_after_seconds=hint))
            violation(await bench.status(ref), f"the poll hint is {hint!r}")

    @check("TASK-12", rule="a poll hint reaches the runtime in seconds, and uncapped: the runtime caps it")
    async def test_poll_hints_pass(self: DriverSubject, bench: DriverBench) -> None:
        if not self.poll_hints:
            raise NotApplicable("the protocol has no poll hints (poll_hints = False)")
        ref = await bench.submitted()
        for hint in (7.5, 1.0, 0.25, 500_000.0):
            bench.remote.jobs[ref.remote_id].poll_after_seconds = hint
            got = snapshot(await bench.status(ref), f"the poll hint is {hint:g} seconds")
            if got.poll_after_seconds is None or not math.isclose(got.poll_after_seconds, hint):
                raise Shortfall(f"a hint of {hint:g} seconds came to {told(got.poll_after_seconds)}")

    @check("TASK-2", "TASK-12", rule="input_required carries what is asked, whole and unchanged")
    async def test_input_required_has_its_request(self: DriverSubject, bench: DriverBench) -> None:
        if not self.input_required:
            raise NotApplicable("the remote never asks (input_required = False)")
        ref = await bench.submitted()
        job = bench.remote.jobs[ref.remote_id]
        job.status = TaskStatus.INPUT_REQUIRED
        for request in ({"message": CANARY, "schema": {"type": "object"}}, {"message": "x" * 70_000}):
            job.input_required = request
            answer = await bench.status(ref)
            if isinstance(answer, ProtocolViolation) and len(request["message"]) > 60_000:
                continue
            got = snapshot(answer, "the job waits for input")
            if got.status is not TaskStatus.INPUT_REQUIRED:
                raise Shortfall(f"a job that waits for input is told as {got.status.value}")
            if got.input_required is None or dict(got.input_required) != request:
                raise Shortfall(f"the request came to {told(got.input_required)} (BOUND-2: never cut)")

    @check("TASK-2", rule="input_required without a request is a ProtocolViolation")
    async def test_input_required_without_a_request(self: DriverSubject, bench: DriverBench) -> None:
        if not self.input_required:
            raise NotApplicable("the remote never asks (input_required = False)")
        ref = await bench.submitted()
        nothing: tuple[Any, ...] = (None, "text", [])
        for request in nothing:
            said = Said(Operation.STATUS, "j", TaskStatus.INPUT_REQUIRED, input_required=request)
            if spelled(self, said):
                bench.remote.plan(
                    Operation.STATUS, twist(status=TaskStatus.INPUT_REQUIRED, input_required=request)
                )
                violation(await bench.status(ref), f"the job waits for input and asks {request!r}")

    @check("TASK-12", rule="every status call asks the remote; no state is kept from an earlier one")
    async def test_asks_every_time(self: DriverSubject, bench: DriverBench) -> None:
        ref = await bench.submitted()
        job = bench.remote.jobs[ref.remote_id]
        states = [TaskStatus.WORKING, TaskStatus.WORKING, TaskStatus.COMPLETED]
        if self.input_required:
            states.insert(1, TaskStatus.INPUT_REQUIRED)
        for number, state in enumerate(states, start=1):
            job.status, job.input_required, job.result = state, {"message": "?"}, number
            got = snapshot(await bench.status(ref), f"the job is {state.value}")
            if got.status is not state:
                raise Shortfall(f"call {number} told {got.status.value} of a job that is {state.value} now")
        if (asked := bench.remote.count(Operation.STATUS)) != len(states):
            raise Shortfall(f"{len(states)} status calls made {asked} requests")

    @check("TASK-8", rule="trouble on the way is worth another try: never a violation, never a state")
    async def test_trouble_is_transient(self: DriverSubject, bench: DriverBench) -> None:
        for operation in ASKING:
            for trouble in (Trouble.OVERLOADED, Trouble.LOST):
                ref = await bench.submitted()
                bench.remote.always(operation, trouble)
                answer = await bench.asked(operation, ref)
                bench.remote.always(operation, None)
                _transient(answer, f"a {operation} call met trouble of the kind {trouble.value!r}")
            ref = await bench.submitted()
            async with bench.remote.unreachable():
                answer = await bench.asked(operation, ref)
            _transient(answer, f"a {operation} call could not reach the remote")

    @check("TASK-8", rule="after trouble the next call is as good as the first")
    async def test_recovers_from_trouble(self: DriverSubject, bench: DriverBench) -> None:
        ref = await bench.submitted()
        for trouble in (Trouble.OVERLOADED, Trouble.LOST, Trouble.LOST):
            bench.remote.plan(Operation.STATUS, trouble)
            await bench.status(ref)
        async with bench.remote.unreachable():
            await bench.status(ref)
        bench.remote.plan(Operation.STATUS)
        got = snapshot(await bench.status(ref), "all is well again")
        if got.status is not TaskStatus.WORKING:
            raise Shortfall(f"a job under way is told as {got.status.value}")

    @check("TASK-8", rule="the runtime backs off and retries; a driver tries no more than three times itself")
    async def test_does_not_retry_for_long(self: DriverSubject, bench: DriverBench) -> None:
        ref = await bench.submitted()
        bench.remote.always(Operation.STATUS, Trouble.OVERLOADED)
        await bench.status(ref)
        if (tries := bench.remote.count(Operation.STATUS)) > 3:
            raise Shortfall(f"one status call made {tries} requests")


def _transient(answer: Any, where: str) -> None:
    if isinstance(answer, ProtocolViolation):
        raise Shortfall(f"where {where}, it raised {told(answer)}: the task would fail for good") from answer
    if not isinstance(answer, Exception):
        raise Shortfall(f"where {where}, it came to {told(answer)} instead of an error")
