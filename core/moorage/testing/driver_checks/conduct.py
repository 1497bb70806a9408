"""How a driver behaves: cancellation, concurrency, restarts, secrets (TASK-10, TASK-11, CRED-7)."""

import asyncio
import traceback
from collections.abc import Awaitable, Callable
from typing import Any

from moorage.contract import TaskHandle, TaskStatus
from moorage.testing.checks import Shortfall, check, outcome, told
from moorage.testing.driver_bench import (
    CALL_SECONDS,
    SECRET,
    DriverBench,
    DriverSubject,
    snapshot,
)
from moorage.testing.remote import SILENCE_SECONDS, Operation, Slow, Trouble, twist
from moorage.testing.watching import Heartbeat, must_obey_cancellation, until

CROWD = 20


class ConductChecks:
    """Checks that concern all of a driver's calls."""

    @check("TASK-11", rule="a cancelled call ends promptly, as cancelled, and leaves nothing running")
    async def test_obeys_cancellation(self: DriverSubject, bench: DriverBench) -> None:
        ref = await bench.submitted()
        calls: dict[Operation, Callable[[], Awaitable[Any]]] = {
            Operation.STATUS: lambda: bench.driver.get_status(ref),
            Operation.CANCEL: lambda: bench.driver.cancel(ref),
            Operation.SUBMIT: lambda: bench.driver.submit(bench.submit_call(2)),
        }
        for operation, call in calls.items():
            arrived = bench.remote.count(operation)
            bench.remote.plan(operation, Trouble.SILENT)
            await must_obey_cancellation(
                call,
                lambda operation=operation, arrived=arrived: bench.remote.count(operation) > arrived,  # type: ignore[misc]
                f"a {operation} call",
            )

    @check("PLUG-7", rule="no call blocks the event loop: blocking work belongs in a thread")
    async def test_does_not_block_the_event_loop(self: DriverSubject, bench: DriverBench) -> None:
        ref = await bench.submitted()
        for operation in (Operation.STATUS, Operation.CANCEL, Operation.SUBMIT):
            bench.remote.plan(operation, Slow(0.6))
        async with Heartbeat() as heart:
            await bench.status(ref)
            await bench.cancel(ref)
            await bench.submit(2)
        heart.must_be_steady()

    @check("TASK-10", rule="concurrent calls do not mix: each task gets its own state and result")
    async def test_concurrent_calls_do_not_mix(self: DriverSubject, bench: DriverBench) -> None:
        refs = await asyncio.gather(*(bench.submitted(number) for number in range(CROWD)))
        if len({ref.remote_id for ref in refs}) != CROWD:
            raise Shortfall("concurrent submits share a remote id")
        for number, ref in enumerate(refs):
            job = bench.remote.jobs[ref.remote_id]
            job.status, job.result = TaskStatus.COMPLETED, {"number": number}
            bench.remote.always_for(ref.remote_id, Slow(0.02 * (number % 5)))
        answers = await asyncio.gather(*(bench.status(ref) for ref in refs))
        for number, answer in enumerate(answers):
            got = snapshot(answer, f"{CROWD} jobs are polled at once")
            if got.result != {"number": number}:
                raise Shortfall(f"task {number} got the result {told(got.result)}")

    @check("TASK-10", rule="a call that hangs holds up no other task")
    async def test_a_silent_job_holds_up_no_other(self: DriverSubject, bench: DriverBench) -> None:
        silent = await bench.submitted(0)
        refs = [await bench.submitted(number) for number in range(1, 6)]
        bench.remote.always_for(silent.remote_id, Trouble.SILENT)
        hanging = asyncio.ensure_future(bench.driver.get_status(silent))
        try:
            await until(
                lambda: bench.remote.count(Operation.STATUS, silent.remote_id), "no status call arrived"
            )
            began = asyncio.get_running_loop().time()
            for answer in await asyncio.gather(*(bench.status(ref) for ref in refs)):
                snapshot(answer, "another job's remote keeps silent")
            took = asyncio.get_running_loop().time() - began
        finally:
            hanging.cancel()
            await asyncio.wait({hanging}, timeout=CALL_SECONDS)
        if took > SILENCE_SECONDS - 1:
            raise Shortfall(f"the others waited {took:.1f} seconds for one job's remote")

    @check("TASK-10", rule="one task's failure leaves the others alone")
    async def test_a_failing_job_disturbs_no_other(self: DriverSubject, bench: DriverBench) -> None:
        bad, good = await bench.submitted(1), await bench.submitted(2)
        bench.remote.always_for(bad.remote_id, twist(status="no-such-status"))
        answers = await asyncio.gather(*(bench.status(ref) for ref in (bad, good, bad, good)))
        for answer in answers[1::2]:
            snapshot(answer, "another job's replies are malformed")

    @check("TASK-11", "TASK-19", rule="the handle and the binding are all that another process needs")
    async def test_another_process_takes_over(self: DriverSubject, bench: DriverBench) -> None:
        ref = await bench.submitted()
        async with bench.rebuilt() as driver:
            answer = await outcome(CALL_SECONDS, driver.get_status(ref), "the status call")
            got = snapshot(answer, "a driver that another process built polls the task")
            if got.status is not TaskStatus.WORKING:
                raise Shortfall(f"a job under way is told as {got.status.value}")
            answer = await outcome(CALL_SECONDS, driver.cancel(ref), "the cancel call")
            snapshot(answer, "a driver that another process built cancels the task")
        if bench.remote.count(Operation.CANCEL, ref.remote_id) != 1:
            raise Shortfall("the cancel of the other process did not arrive")

    @check("CRED-7", "CRED-9", rule="a run's secrets are in no handle, snapshot or error, and are not kept")
    async def test_keeps_no_secret(self: DriverSubject, bench: DriverBench) -> None:
        handle = await bench.submit()
        if not isinstance(handle, TaskHandle):
            raise Shortfall(f"an ordinary submit came to {told(handle)}")
        ref = bench.ref(handle.remote_id)
        seen: list[object] = [handle, await bench.status(ref), vars(bench.driver)]
        for trouble in (Trouble.OVERLOADED, Trouble.REFUSED, Trouble.LOST, twist(status="no-such-status")):
            bench.remote.plan(Operation.SUBMIT, trouble)
            seen.append(await bench.submit(2))
        for one in seen:
            if SECRET in _all_of(one):
                raise Shortfall(f"the secret of the submitting run stands in {type(one).__name__}")

    @check("TASK-8", rule="a slow reply is waited for: deadlines are the runtime's")
    async def test_waits_for_a_slow_reply(self: DriverSubject, bench: DriverBench) -> None:
        ref = await bench.submitted()
        bench.remote.plan(Operation.STATUS, Slow(1.5))
        got = snapshot(await bench.status(ref), "the reply takes 1.5 seconds")
        if got.status is not TaskStatus.WORKING or bench.remote.count(Operation.STATUS) != 1:
            raise Shortfall("it gave up early, or asked twice")


def _all_of(value: object) -> str:
    if isinstance(value, BaseException):
        return "".join(traceback.format_exception(value, chain=True)) + repr(vars(value))
    return repr(value)
