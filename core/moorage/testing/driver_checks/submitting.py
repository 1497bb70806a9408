"""Claims and submits (TASK-1, 2, 3, 22, 23, BOUND-3)."""

import copy
import inspect
import json
from typing import Any

from moorage.contract import (
    ProtocolViolation,
    ServerClaim,
    SubmitRejected,
    TaskBinding,
    TaskHandle,
    TaskStatus,
)
from moorage.testing.checks import NotApplicable, Shortfall, check, told
from moorage.testing.driver_bench import (
    CANARY,
    DriverBench,
    DriverSubject,
    snapshot,
    spelled,
    violation,
)
from moorage.testing.remote import Operation, Said, Slow, Trouble, Wire, twist

BLANK_IDS = ("", "   ", None)


class SubmitChecks:
    """Checks of ``claim`` and ``submit``."""

    @check("TASK-1", rule="a driver has claim, and coroutines submit, get_status and cancel")
    async def test_has_the_methods_of_a_driver(self: DriverSubject, bench: DriverBench) -> None:
        for name in ("submit", "get_status", "cancel", "respond"):
            method = getattr(bench.driver, name, None)
            if method is None and name == "respond":
                continue
            if not callable(method) or not inspect.iscoroutinefunction(method):
                raise Shortfall(f"{name} is {told(method)}, not an async method")
        if inspect.iscoroutinefunction(bench.driver.claim):
            raise Shortfall("claim is async; it answers at once and does no I/O")

    @check(
        "TASK-1",
        "ORD-1",
        rule="claim binds tools that the server has to this driver, and data that JSON keeps",
    )
    async def test_claims_the_servers_tools(self: DriverSubject, bench: DriverBench) -> None:
        claim = bench.driver.claim(bench.server, list(bench.tools))
        if not isinstance(claim, ServerClaim):
            raise Shortfall(f"claim returned {told(claim)}, not a ServerClaim")
        if not claim.submit:
            raise Shortfall(f"claim takes no tool of {list(bench.tools)}: {claim.errors}")
        for tool, binding in claim.submit.items():
            if tool not in bench.tools:
                raise Shortfall(f"it claims {tool!r}, which the server does not have")
            if binding.driver != self.name:
                raise Shortfall(f"the binding names driver {binding.driver!r}, and this one is {self.name!r}")
            if not binding.task_name.strip() or len(binding.task_name) > 255:
                raise Shortfall("a task name is blank or longer than 255 characters")
            _survives_json(binding)
        if bench.remote.exchanges:
            raise Shortfall("claim talked to the remote")

    @check("TASK-1", rule="claim gives the same answer again, whatever the order of the tools")
    async def test_claims_the_same_again(self: DriverSubject, bench: DriverBench) -> None:
        tools = [*bench.tools, "unrelated"]
        first = bench.driver.claim(bench.server, tools)
        again = bench.driver.claim(bench.server, list(reversed(tools)))
        if first != again:
            raise Shortfall(f"it claimed {told(first)} and then {told(again)}")

    @check("ORD-1", rule="a tool that the server lacks is reported in the claim, and never raised")
    async def test_claims_survive_missing_tools(self: DriverSubject, bench: DriverBench) -> None:
        try:
            claim = bench.driver.claim(bench.server, ["something-else"])
        except Exception as raised:
            raise Shortfall(f"claim raised {told(raised)} where the server has other tools") from raised
        if not isinstance(claim, ServerClaim):
            raise Shortfall(f"claim returned {told(claim)}")
        if set(claim.submit) - {"something-else"}:
            raise Shortfall(f"it claims {sorted(claim.submit)}, which the server does not have")

    @check("TASK-1", "TASK-22", rule="a submit starts the work exactly once, with the caller's arguments")
    async def test_submits_once_with_the_arguments(self: DriverSubject, bench: DriverBench) -> None:
        await bench.submitted()
        arrived = [e for e in bench.remote.exchanges if e.operation is Operation.SUBMIT]
        if len(arrived) != 1:
            raise Shortfall(f"{len(arrived)} submits arrived at the remote")
        if CANARY not in _text(arrived[0].payload):
            raise Shortfall(f"the arguments did not arrive: {told(arrived[0].payload)}")

    @check("TASK-1", rule="submit changes neither arguments nor binding, which are the runtime's")
    async def test_submit_changes_no_input(self: DriverSubject, bench: DriverBench) -> None:
        call = bench.submit_call(nested={"list": [1, 2]})
        before = copy.deepcopy((dict(call.arguments), dict(call.binding.data)))
        await bench.driver.submit(call)
        if (dict(call.arguments), dict(call.binding.data)) != before:
            raise Shortfall("they differ after the call")

    @check("TASK-2", rule="the handle's id is the remote's id for the job, non-blank text")
    async def test_a_blank_remote_id_is_refused(self: DriverSubject, bench: DriverBench) -> None:
        for blank in BLANK_IDS:
            if not spelled(self, Said(Operation.SUBMIT, blank, TaskStatus.WORKING)):
                continue
            bench.remote.plan(Operation.SUBMIT, twist(remote_id=blank))
            answer = await bench.submit()
            violation(answer, f"a submit was answered with the id {blank!r}")

    @check("BOUND-3", rule="an id that is too long reaches the runtime whole, so that it can still cancel")
    async def test_a_long_remote_id_is_whole(self: DriverSubject, bench: DriverBench) -> None:
        long = "j" * 400
        bench.remote.next_id = lambda number: long
        answer = await bench.submit()
        named = answer.remote_id if isinstance(answer, TaskHandle | ProtocolViolation) else None
        if named != long:
            raise Shortfall(f"an id of 400 characters came to {told(answer)}")

    @check("TASK-3", rule="a submit answer that is terminal already is told as such, with its result")
    async def test_a_submit_may_be_done_at_once(self: DriverSubject, bench: DriverBench) -> None:
        if not self.done_at_once:
            raise NotApplicable("a submit is never answered with an ended job (done_at_once = False)")
        bench.remote.plan(Operation.SUBMIT, lambda said: _completed(said, {"answer": CANARY}))
        answer = await bench.submit()
        if not isinstance(answer, TaskHandle):
            raise Shortfall(f"it came to {told(answer)}")
        if answer.snapshot.status is not TaskStatus.COMPLETED:
            raise Shortfall(f"the handle says {answer.snapshot.status.value!r} of a job that has completed")
        if answer.snapshot.result != {"answer": CANARY}:
            raise Shortfall(f"the result came to {told(answer.snapshot.result)}")

    @check("TASK-23", rule="a malformed submit reply is a ProtocolViolation and never an internal error")
    async def test_a_garbled_submit_reply(self: DriverSubject, bench: DriverBench) -> None:
        for reply in self.garbled(Said(Operation.SUBMIT, "job-x", TaskStatus.WORKING)):
            bench.remote.plan(Operation.SUBMIT, Wire(reply))
            error = violation(await bench.submit(), f"a submit was answered with {told(reply)}")
            _names_the_server(error, bench)

    @check("TASK-23", rule="a malformed submit reply keeps the remote id where that can still be read")
    async def test_a_garbled_submit_reply_keeps_the_id(self: DriverSubject, bench: DriverBench) -> None:
        bench.remote.plan(Operation.SUBMIT, twist(status="no-such-status"))
        error = violation(await bench.submit(), "a submit was answered with an unknown status")
        if error.remote_id not in bench.remote.jobs:
            raise Shortfall(
                f"the error's remote_id is {error.remote_id!r}: nobody can cancel job "
                f"{', '.join(bench.remote.jobs)}, which runs on"
            )
        _names_the_server(error, bench)

    @check("TASK-22", rule="a submit that the remote turns down for good is a SubmitRejected: no task exists")
    async def test_a_refused_submit(self: DriverSubject, bench: DriverBench) -> None:
        if not self.refuses:
            raise NotApplicable("the protocol has no refusal (refuses = False)")
        bench.remote.plan(Operation.SUBMIT, Trouble.REFUSED)
        answer = await bench.submit()
        if not isinstance(answer, SubmitRejected):
            raise Shortfall(f"a refusal came to {told(answer)}")

    @check("TASK-22", rule="a submit that never arrived fails; it is not tried again for long")
    async def test_an_unreachable_remote(self: DriverSubject, bench: DriverBench) -> None:
        async with bench.remote.unreachable():
            answer = await bench.submit()
        if not isinstance(answer, Exception):
            raise Shortfall(f"it came to {told(answer)}")
        if isinstance(answer, ProtocolViolation):
            raise Shortfall(f"it raised {told(answer)}: the remote has said nothing at all")

    @check("TASK-22", rule="a submit whose reply is lost may have taken effect: not rejected, not repeated")
    async def test_a_lost_submit_reply(self: DriverSubject, bench: DriverBench) -> None:
        bench.remote.plan(Operation.SUBMIT, Trouble.LOST)
        answer = await bench.submit()
        if isinstance(answer, SubmitRejected):
            raise Shortfall("it raised SubmitRejected, which says that certainly no job exists; one does")
        if not isinstance(answer, Exception):
            raise Shortfall(f"it came to {told(answer)}")
        if (count := bench.remote.count(Operation.SUBMIT)) != 1:
            raise Shortfall(f"the driver submitted {count} times, and {count} jobs run now")

    @check("TASK-22", rule="a slow submit is waited for, not repeated")
    async def test_a_slow_submit(self: DriverSubject, bench: DriverBench) -> None:
        bench.remote.plan(Operation.SUBMIT, Slow(0.5))
        await bench.submitted()
        if (count := bench.remote.count(Operation.SUBMIT)) != 1:
            raise Shortfall(f"the driver submitted {count} times")

    @check("TASK-3", rule="the snapshot of a submit is about the very job of its handle")
    async def test_the_first_snapshot_is_of_that_job(self: DriverSubject, bench: DriverBench) -> None:
        answer = await bench.submit()
        first = snapshot(getattr(answer, "snapshot", answer), "a submit was answered")
        if first.remote_id is not None and first.remote_id != answer.remote_id:
            raise Shortfall(f"the snapshot is of {first.remote_id!r}, the handle of {answer.remote_id!r}")


def _completed(said: Said, result: Any) -> Said:
    return twist(status=TaskStatus.COMPLETED, result=result)(said)


def _survives_json(binding: TaskBinding) -> None:
    try:
        kept = json.loads(json.dumps(dict(binding.data)))
    except (TypeError, ValueError) as raised:
        raise Shortfall(f"the binding's data is no JSON: {told(raised)}") from raised
    if kept != dict(binding.data):
        raise Shortfall(f"the binding's data comes back from JSON as {told(kept)}")


def _names_the_server(error: ProtocolViolation, bench: DriverBench) -> None:
    if bench.server.name not in str(error):
        raise Shortfall(f"the error does not name the server {bench.server.name!r}: {told(error)}")


def _text(payload: Any) -> str:
    try:
        return json.dumps(payload, default=str)
    except (TypeError, ValueError):
        return repr(payload)
