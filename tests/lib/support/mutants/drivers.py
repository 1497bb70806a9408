"""A correct driver in process, and what can be wrong with one."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from moorage.contract import (
    GatewayContext,
    MoorageError,
    ProtocolViolation,
    ServerClaim,
    ServerConfig,
    SubmitCall,
    SubmitRejected,
    TaskAnswer,
    TaskBinding,
    TaskDriver,
    TaskHandle,
    TaskRef,
    TaskSnapshot,
    TaskStatus,
    TransientDriverError,
)
from moorage.testing import DriverConformance, FaultyRemote, Operation, Said, Trouble
from support.mutants.model import Mutant

STATES = {
    "running": TaskStatus.WORKING,
    "asking": TaskStatus.INPUT_REQUIRED,
    "done": TaskStatus.COMPLETED,
    "broken": TaskStatus.FAILED,
    "stopped": TaskStatus.CANCELLED,
}
WORDS = {state: word for word, state in STATES.items()}


class Busy(Exception):
    """The remote asks to try later."""


class Refused(Exception):
    """The remote turns the job down."""


class Unknown(Exception):
    """The remote has no such job."""


class PlainDriver:
    """Correct: talks to the remote in process, and keeps nothing between its calls."""

    def __init__(self, remote: FaultyRemote) -> None:
        self.remote = remote

    def claim(self, server: ServerConfig, tool_names: Sequence[str]) -> ServerClaim:
        if "run" not in tool_names:
            return ServerClaim(errors=(f"server {server.name!r} has no tool 'run'",))
        return ServerClaim(submit={"run": TaskBinding("plain", "run", {"queue": "main"})})

    async def submit(self, call: SubmitCall) -> TaskHandle:
        where = f"server {call.server!r}"
        try:
            reply = await self.remote.exchange(Operation.SUBMIT, None, {"arguments": dict(call.arguments)})
        except Refused as refused:
            raise SubmitRejected(f"{where}: refused") from refused
        except (ConnectionError, Busy) as trouble:
            raise TransientDriverError(f"{where}: {type(trouble).__name__}") from trouble
        return self.handle(reply, where)

    def handle(self, reply: Any, where: str) -> TaskHandle:
        remote_id = reply.get("id") if isinstance(reply, Mapping) else None
        remote_id = remote_id if isinstance(remote_id, str) and remote_id.strip() else None
        try:
            snapshot = self.read(reply, where)
            if remote_id is None:
                raise ProtocolViolation(f"{where}: no job id")
        except ProtocolViolation as error:
            raise ProtocolViolation(str(error), remote_id=remote_id) from None
        return TaskHandle(remote_id, snapshot)

    async def get_status(self, ref: TaskRef) -> TaskSnapshot:
        return await self.ask(Operation.STATUS, ref)

    async def cancel(self, ref: TaskRef) -> TaskSnapshot:
        return await self.ask(Operation.CANCEL, ref)

    async def respond(self, ref: TaskRef, answer: TaskAnswer) -> TaskSnapshot:
        return await self.ask(Operation.RESPOND, ref, {"answer": answer.response})

    async def ask(self, operation: Operation, ref: TaskRef, payload: Any = None) -> TaskSnapshot:
        where = f"server {ref.server!r}"
        try:
            reply = await self.remote.exchange(operation, ref.remote_id, payload)
        except Unknown as unknown:
            raise ProtocolViolation(f"{where}: no such job") from unknown
        except (ConnectionError, Busy) as trouble:
            raise TransientDriverError(f"{where}: {type(trouble).__name__}") from trouble
        return self.read(reply, where)

    def read(self, reply: Any, where: str) -> TaskSnapshot:
        if not isinstance(reply, Mapping):
            raise ProtocolViolation(f"{where}: the reply is no object")
        word = reply.get("state")
        if not isinstance(word, str) or word not in STATES:
            raise ProtocolViolation(f"{where}: unknown state")
        return TaskSnapshot(
            status=STATES[word],
            remote_id=reply.get("id"),
            result=reply.get("result"),
            error=reply.get("error"),
            input_required=reply.get("question"),
            poll_after_seconds=reply.get("again_in"),
        )


class PlainConformance(DriverConformance):
    """The suite of `PlainDriver` and its mutants."""

    name = "plain"
    driver: Callable[[FaultyRemote], Any] = PlainDriver

    def build(self, gateway: GatewayContext, remote: FaultyRemote) -> TaskDriver:
        made: TaskDriver = type(self).driver(remote)
        return made

    def spell(self, said: Said) -> Any:
        word = WORDS.get(said.status, said.status) if isinstance(said.status, TaskStatus) else said.status
        reply = {
            "id": said.remote_id,
            "state": word,
            "result": said.result,
            "error": said.error,
            "question": said.input_required,
            "again_in": said.poll_after_seconds,
        }
        return {key: value for key, value in reply.items() if value is not None}

    def garbled(self, said: Said) -> Sequence[Any]:
        return (None, [], "text", 7, {}, {"unrelated": True})

    def fail(self, trouble: Trouble, operation: Operation, remote_id: str | None) -> Any:
        known = {Trouble.OVERLOADED: Busy(), Trouble.REFUSED: Refused(), Trouble.FORGOTTEN: Unknown()}
        return known.get(trouble)


class ClaimsWhatIsNotThere(PlainDriver):
    def claim(self, server: ServerConfig, tool_names: Sequence[str]) -> ServerClaim:
        return ServerClaim(submit={"run": TaskBinding("plain", "run")})


class RaisesOnMissingTools(PlainDriver):
    def claim(self, server: ServerConfig, tool_names: Sequence[str]) -> ServerClaim:
        tool_names.index("run")
        return super().claim(server, tool_names)


class BindsToAnother(PlainDriver):
    def claim(self, server: ServerConfig, tool_names: Sequence[str]) -> ServerClaim:
        return ServerClaim(submit={"run": TaskBinding("ordinary", "run")} if "run" in tool_names else {})


class BindsWhatJsonLoses(PlainDriver):
    def claim(self, server: ServerConfig, tool_names: Sequence[str]) -> ServerClaim:
        return ServerClaim(submit={"run": TaskBinding("plain", "run", {"shape": (1, 2)})})


class ClaimsByOrder(PlainDriver):
    def claim(self, server: ServerConfig, tool_names: Sequence[str]) -> ServerClaim:
        binding = TaskBinding("plain", "run", {"first": tool_names[0]})
        return ServerClaim(submit={"run": binding} if "run" in tool_names else {})


class SubmitsAgain(PlainDriver):
    async def submit(self, call: SubmitCall) -> TaskHandle:
        try:
            return await super().submit(call)
        except TransientDriverError:
            return await super().submit(call)


class Hedges(PlainDriver):
    async def submit(self, call: SubmitCall) -> TaskHandle:
        try:
            return await asyncio.wait_for(super().submit(call), 0.2)
        except TimeoutError:
            return await super().submit(call)


class DropsArguments(PlainDriver):
    async def submit(self, call: SubmitCall) -> TaskHandle:
        return await super().submit(replace(call, arguments={}))


class ChangesArguments(PlainDriver):
    async def submit(self, call: SubmitCall) -> TaskHandle:
        call.arguments["submitted_by"] = "me"  # type: ignore[index]
        return await super().submit(call)


class TakesAnyId(PlainDriver):
    def handle(self, reply: Any, where: str) -> TaskHandle:
        snapshot = self.read(reply, where)
        return TaskHandle(str(reply.get("id")), replace(snapshot, remote_id=None))


class CutsIds(PlainDriver):
    def handle(self, reply: Any, where: str) -> TaskHandle:
        made = super().handle(reply, where)
        return TaskHandle(made.remote_id[:255], replace(made.snapshot, remote_id=None))


class IgnoresTheFirstState(PlainDriver):
    def handle(self, reply: Any, where: str) -> TaskHandle:
        return TaskHandle(super().handle(reply, where).remote_id)


class TrustsSubmitReplies(PlainDriver):
    def handle(self, reply: Any, where: str) -> TaskHandle:
        return TaskHandle(reply["id"], TaskSnapshot(status=STATES[reply["state"]]))


class LosesTheId(PlainDriver):
    def handle(self, reply: Any, where: str) -> TaskHandle:
        try:
            return super().handle(reply, where)
        except ProtocolViolation as error:
            raise ProtocolViolation(str(error)) from None


class NamesNoServer(PlainDriver):
    def handle(self, reply: Any, where: str) -> TaskHandle:
        return super().handle(reply, "the remote")


class TakesRefusalForTrouble(PlainDriver):
    async def submit(self, call: SubmitCall) -> TaskHandle:
        try:
            return await super().submit(call)
        except SubmitRejected as error:
            raise TransientDriverError(str(error)) from error


class TakesTroubleForRefusal(PlainDriver):
    async def submit(self, call: SubmitCall) -> TaskHandle:
        try:
            return await super().submit(call)
        except TransientDriverError as error:
            raise SubmitRejected(str(error)) from error


class PretendsToHaveSubmitted(PlainDriver):
    async def submit(self, call: SubmitCall) -> TaskHandle:
        try:
            return await super().submit(call)
        except TransientDriverError:
            return TaskHandle(f"later-{call.task_id}")


class FirstSnapshotOfAnother(PlainDriver):
    def handle(self, reply: Any, where: str) -> TaskHandle:
        made = super().handle(reply, where)
        return TaskHandle(made.remote_id, replace(made.snapshot, remote_id="job-0"))


class ReadsDifferently(PlainDriver):
    """Changes what `read` returns, or the reply before."""

    def change(self, snapshot: TaskSnapshot) -> Any:
        return snapshot

    def before(self, reply: Any) -> Any:
        return reply

    def read(self, reply: Any, where: str) -> Any:
        return self.change(super().read(self.before(reply), where))


class UnknownIsWorking(ReadsDifferently):
    def before(self, reply: Any) -> Any:
        if isinstance(reply, Mapping) and isinstance(reply.get("state"), str):
            return {**reply, "state": reply["state"] if reply["state"] in STATES else "running"}
        return reply


class ViolationsAreTransient(PlainDriver):
    async def ask(self, operation: Operation, ref: TaskRef, payload: Any = None) -> TaskSnapshot:
        try:
            return await super().ask(operation, ref, payload)
        except ProtocolViolation as error:
            raise TransientDriverError(str(error)) from error


class TrustsReplies(PlainDriver):
    def read(self, reply: Any, where: str) -> TaskSnapshot:
        return TaskSnapshot(
            status=STATES[reply["state"]],
            remote_id=reply["id"],
            result=reply.get("result"),
            error=reply.get("error"),
            input_required=reply.get("question"),
            poll_after_seconds=reply.get("again_in"),
        )


class StampsTheId(PlainDriver):
    async def ask(self, operation: Operation, ref: TaskRef, payload: Any = None) -> TaskSnapshot:
        return replace(await super().ask(operation, ref, payload), remote_id=ref.remote_id)


class DropsTheId(ReadsDifferently):
    def change(self, snapshot: TaskSnapshot) -> Any:
        return replace(snapshot, remote_id=None)


class ForgottenIsTransient(PlainDriver):
    async def ask(self, operation: Operation, ref: TaskRef, payload: Any = None) -> TaskSnapshot:
        try:
            return await super().ask(operation, ref, payload)
        except ProtocolViolation as error:
            if "no such job" in str(error):
                raise TransientDriverError(str(error)) from error
            raise


class MendsHints(ReadsDifferently):
    def before(self, reply: Any) -> Any:
        if isinstance(reply, Mapping) and "again_in" in reply:
            hint = reply["again_in"]
            return {**reply, "again_in": max(hint, 1.0) if isinstance(hint, int | float) else None}
        return reply


class HintsInMilliseconds(ReadsDifferently):
    def change(self, snapshot: TaskSnapshot) -> Any:
        hint = snapshot.poll_after_seconds
        return replace(snapshot, poll_after_seconds=None if hint is None else hint / 1000)


class CapsHints(ReadsDifferently):
    def change(self, snapshot: TaskSnapshot) -> Any:
        hint = snapshot.poll_after_seconds
        return replace(snapshot, poll_after_seconds=None if hint is None else min(hint, 60))


class CutsQuestions(ReadsDifferently):
    def change(self, snapshot: TaskSnapshot) -> Any:
        if snapshot.input_required is None:
            return snapshot
        message = str(snapshot.input_required.get("message"))[:1_000]
        return replace(snapshot, input_required={"message": message})


class InventsQuestions(ReadsDifferently):
    def before(self, reply: Any) -> Any:
        if isinstance(reply, Mapping) and reply.get("state") == "asking":
            question = reply.get("question")
            return {**reply, "question": question if isinstance(question, Mapping) else {}}
        return reply


class Caches(PlainDriver):
    def __init__(self, remote: FaultyRemote) -> None:
        super().__init__(remote)
        self.known: dict[str, TaskSnapshot] = {}

    async def get_status(self, ref: TaskRef) -> TaskSnapshot:
        if ref.remote_id not in self.known:
            self.known[ref.remote_id] = await super().get_status(ref)
        return self.known[ref.remote_id]


class TroubleIsFailure(PlainDriver):
    async def ask(self, operation: Operation, ref: TaskRef, payload: Any = None) -> TaskSnapshot:
        try:
            return await super().ask(operation, ref, payload)
        except TransientDriverError as error:
            return TaskSnapshot(status=TaskStatus.FAILED, error=str(error), remote_id=ref.remote_id)


class TroubleIsAViolation(PlainDriver):
    async def ask(self, operation: Operation, ref: TaskRef, payload: Any = None) -> TaskSnapshot:
        try:
            return await super().ask(operation, ref, payload)
        except TransientDriverError as error:
            raise ProtocolViolation(str(error)) from error


class TroubleIsWorking(PlainDriver):
    async def cancel(self, ref: TaskRef) -> TaskSnapshot:
        try:
            return await super().cancel(ref)
        except TransientDriverError:
            return TaskSnapshot(status=TaskStatus.WORKING, remote_id=ref.remote_id)


class Retries(PlainDriver):
    async def get_status(self, ref: TaskRef) -> TaskSnapshot:
        for _ in range(10):
            try:
                return await super().get_status(ref)
            except TransientDriverError:
                await asyncio.sleep(0.01)
        return await super().get_status(ref)


class StaysBroken(PlainDriver):
    broken = False

    async def get_status(self, ref: TaskRef) -> TaskSnapshot:
        if self.broken:
            raise TransientDriverError("the client is closed")
        try:
            return await super().get_status(ref)
        except TransientDriverError:
            self.broken = True
            raise


class GivesUpEarly(PlainDriver):
    async def get_status(self, ref: TaskRef) -> TaskSnapshot:
        async with asyncio.timeout(0.7):
            return await super().get_status(ref)


class SwallowsCancellation(PlainDriver):
    async def ask(self, operation: Operation, ref: TaskRef, payload: Any = None) -> TaskSnapshot:
        try:
            return await super().ask(operation, ref, payload)
        except asyncio.CancelledError:
            return TaskSnapshot(status=TaskStatus.WORKING, remote_id=ref.remote_id)


class TurnsCancellationIntoAnError(PlainDriver):
    async def ask(self, operation: Operation, ref: TaskRef, payload: Any = None) -> TaskSnapshot:
        try:
            return await super().ask(operation, ref, payload)
        except BaseException as error:
            if isinstance(error, MoorageError):
                raise
            raise TransientDriverError("something went wrong") from error


class ShieldsItsCalls(PlainDriver):
    async def ask(self, operation: Operation, ref: TaskRef, payload: Any = None) -> TaskSnapshot:
        return await asyncio.shield(asyncio.ensure_future(super().ask(operation, ref, payload)))


class BlocksTheLoop(PlainDriver):
    async def get_status(self, ref: TaskRef) -> TaskSnapshot:
        time.sleep(0.6)
        return await super().get_status(ref)


class OneAtATime(PlainDriver):
    def __init__(self, remote: FaultyRemote) -> None:
        super().__init__(remote)
        self.lock = asyncio.Lock()

    async def ask(self, operation: Operation, ref: TaskRef, payload: Any = None) -> TaskSnapshot:
        async with self.lock:
            return await super().ask(operation, ref, payload)


class SharesItsState(PlainDriver):
    reply: Any = None

    async def get_status(self, ref: TaskRef) -> TaskSnapshot:
        self.reply = await self.remote.exchange(Operation.STATUS, ref.remote_id)
        await asyncio.sleep(0.01)
        return replace(self.read(self.reply, "server"), remote_id=None)


class OneFailurePoisonsAll(PlainDriver):
    poisoned = False

    async def get_status(self, ref: TaskRef) -> TaskSnapshot:
        if self.poisoned:
            raise ProtocolViolation("the remote is broken")
        try:
            return await super().get_status(ref)
        except ProtocolViolation:
            self.poisoned = True
            raise


class KeepsJobsInMemory(PlainDriver):
    def __init__(self, remote: FaultyRemote) -> None:
        super().__init__(remote)
        self.mine: dict[str, SubmitCall] = {}

    async def submit(self, call: SubmitCall) -> TaskHandle:
        made = await super().submit(replace(call, context=replace(call.context, secrets={})))
        self.mine[made.remote_id] = replace(call, context=replace(call.context, secrets={}))
        return made

    async def ask(self, operation: Operation, ref: TaskRef, payload: Any = None) -> TaskSnapshot:
        if ref.remote_id not in self.mine:
            raise ProtocolViolation("this is no job of mine")
        return await super().ask(operation, ref, payload)


class KeepsSecrets(PlainDriver):
    def __init__(self, remote: FaultyRemote) -> None:
        super().__init__(remote)
        self.token: Any = None

    async def submit(self, call: SubmitCall) -> TaskHandle:
        self.token = call.context.secrets["token"]
        return await super().submit(call)


class QuotesSecrets(PlainDriver):
    async def submit(self, call: SubmitCall) -> TaskHandle:
        try:
            return await super().submit(call)
        except TransientDriverError as error:
            raise TransientDriverError(f"{error} with {dict(call.context.secrets)}") from error


class NeverCancels(PlainDriver):
    async def cancel(self, ref: TaskRef) -> TaskSnapshot:
        return TaskSnapshot(status=TaskStatus.CANCELLED, remote_id=ref.remote_id)


class ClaimsTheCancelWorked(PlainDriver):
    async def cancel(self, ref: TaskRef) -> TaskSnapshot:
        snapshot = await super().cancel(ref)
        return snapshot if snapshot.status.terminal else replace(snapshot, status=TaskStatus.CANCELLED)


class CancelsWhatIsDone(PlainDriver):
    async def cancel(self, ref: TaskRef) -> TaskSnapshot:
        return replace(await super().cancel(ref), status=TaskStatus.CANCELLED, result=None)


class CancelsOnlyOnce(PlainDriver):
    async def cancel(self, ref: TaskRef) -> TaskSnapshot:
        if (await self.get_status(ref)).status.terminal:
            raise ProtocolViolation("the job is over")
        return await super().cancel(ref)


class AnswersAgain(PlainDriver):
    async def respond(self, ref: TaskRef, answer: TaskAnswer) -> TaskSnapshot:
        try:
            return await super().respond(ref, answer)
        except TransientDriverError:
            return await super().respond(ref, answer)


class LosesAnswers(PlainDriver):
    async def respond(self, ref: TaskRef, answer: TaskAnswer) -> TaskSnapshot:
        return await super().respond(ref, replace(answer, response=True))


class TrustsReplyToAnswers(PlainDriver):
    async def respond(self, ref: TaskRef, answer: TaskAnswer) -> TaskSnapshot:
        await self.remote.exchange(Operation.RESPOND, ref.remote_id, {"answer": answer.response})
        return TaskSnapshot(status=TaskStatus.WORKING, remote_id=ref.remote_id)


class DropsFalsyResults(ReadsDifferently):
    def change(self, snapshot: TaskSnapshot) -> Any:
        return replace(snapshot, result=snapshot.result or None)


class ResultsAsText(ReadsDifferently):
    def change(self, snapshot: TaskSnapshot) -> Any:
        return replace(snapshot, result=None if snapshot.result is None else str(snapshot.result))


class CutsResults(ReadsDifferently):
    def change(self, snapshot: TaskSnapshot) -> Any:
        result = snapshot.result
        return replace(snapshot, result=result[:4_000] if isinstance(result, str) else result)


class ChokesOnOddText(ReadsDifferently):
    def change(self, snapshot: TaskSnapshot) -> Any:
        json.dumps(snapshot.result, ensure_ascii=False, allow_nan=False).encode()
        return snapshot


class ReturnsMappings(ReadsDifferently):
    def change(self, snapshot: TaskSnapshot) -> Any:
        return {"status": snapshot.status.value, "result": snapshot.result}


class StatusIsNotAsync(PlainDriver):
    def get_status(self, ref: TaskRef) -> Any:
        return TaskSnapshot(status=TaskStatus.WORKING, remote_id=ref.remote_id)


class DropsReasons(ReadsDifferently):
    def change(self, snapshot: TaskSnapshot) -> Any:
        return replace(snapshot, error="it failed" if snapshot.error else None)


class MixesUpStates(ReadsDifferently):
    def change(self, snapshot: TaskSnapshot) -> Any:
        wrong = snapshot.status is TaskStatus.CANCELLED
        return replace(snapshot, status=TaskStatus.FAILED) if wrong else snapshot


BROKEN: Mapping[type[PlainDriver], tuple[str, str]] = {
    ClaimsWhatIsNotThere: ("claims a tool that the server lacks", "test_claims_survive_missing_tools"),
    RaisesOnMissingTools: ("raises where a tool is missing", "test_claims_survive_missing_tools"),
    BindsToAnother: ("binds to another driver", "test_claims_the_servers_tools"),
    BindsWhatJsonLoses: ("binds data that JSON changes", "test_claims_the_servers_tools"),
    ClaimsByOrder: ("claims by the order of the tools", "test_claims_the_same_again"),
    SubmitsAgain: ("submits again after a lost reply", "test_a_lost_submit_reply"),
    Hedges: ("submits again when it is slow", "test_a_slow_submit"),
    DropsArguments: ("drops the arguments", "test_submits_once_with_the_arguments"),
    ChangesArguments: ("changes the arguments in place", "test_submit_changes_no_input"),
    TakesAnyId: ("takes any id", "test_a_blank_remote_id_is_refused"),
    CutsIds: ("cuts long ids", "test_a_long_remote_id_is_whole"),
    IgnoresTheFirstState: ("ignores that a submit is done", "test_a_submit_may_be_done_at_once"),
    TrustsSubmitReplies: ("falls over a malformed submit reply", "test_a_garbled_submit_reply"),
    LosesTheId: ("loses the id of a malformed reply", "test_a_garbled_submit_reply_keeps_the_id"),
    NamesNoServer: ("does not name the server", "test_a_garbled_submit_reply"),
    TakesRefusalForTrouble: ("takes a refusal for trouble", "test_a_refused_submit"),
    TakesTroubleForRefusal: ("takes a lost reply for a refusal", "test_a_lost_submit_reply"),
    PretendsToHaveSubmitted: ("invents a handle when offline", "test_an_unreachable_remote"),
    FirstSnapshotOfAnother: ("first snapshot of another job", "test_the_first_snapshot_is_of_that_job"),
    UnknownIsWorking: ("takes unknown states for working", "test_an_unknown_status"),
    ViolationsAreTransient: ("retries malformed replies for ever", "test_garbled_replies"),
    TrustsReplies: ("falls over malformed replies", "test_garbled_replies"),
    StampsTheId: ("stamps its own id on replies", "test_a_reply_about_another_job"),
    DropsTheId: ("drops the id of replies", "test_an_honest_id_passes"),
    ForgottenIsTransient: ("retries a forgotten job for ever", "test_a_forgotten_job"),
    MendsHints: ("mends bad poll hints silently", "test_bad_poll_hints"),
    HintsInMilliseconds: ("takes milliseconds for seconds", "test_poll_hints_pass"),
    CapsHints: ("caps poll hints", "test_poll_hints_pass"),
    CutsQuestions: ("cuts what is asked", "test_input_required_has_its_request"),
    InventsQuestions: ("invents what is asked", "test_input_required_without_a_request"),
    Caches: ("answers from a cache", "test_asks_every_time"),
    TroubleIsFailure: ("fails the task on trouble", "test_trouble_is_transient"),
    TroubleIsAViolation: ("takes trouble for a violation", "test_trouble_is_transient"),
    TroubleIsWorking: ("swallows a failed cancel", "test_trouble_is_transient"),
    Retries: ("retries by itself", "test_does_not_retry_for_long"),
    StaysBroken: ("stays broken after trouble", "test_recovers_from_trouble"),
    GivesUpEarly: ("has a deadline of its own", "test_waits_for_a_slow_reply"),
    SwallowsCancellation: ("swallows its cancellation", "test_obeys_cancellation"),
    TurnsCancellationIntoAnError: ("turns its cancellation into an error", "test_obeys_cancellation"),
    ShieldsItsCalls: ("leaves calls running", "test_obeys_cancellation"),
    BlocksTheLoop: ("blocks the event loop", "test_does_not_block_the_event_loop"),
    OneAtATime: ("makes one call at a time", "test_a_silent_job_holds_up_no_other"),
    SharesItsState: ("shares state between calls", "test_concurrent_calls_do_not_mix"),
    OneFailurePoisonsAll: ("lets one failure poison all", "test_a_failing_job_disturbs_no_other"),
    KeepsJobsInMemory: ("keeps its jobs in memory", "test_another_process_takes_over"),
    KeepsSecrets: ("keeps the run's secrets", "test_keeps_no_secret"),
    QuotesSecrets: ("quotes secrets in errors", "test_keeps_no_secret"),
    NeverCancels: ("never tells the remote to cancel", "test_a_cancel_reaches_the_remote"),
    ClaimsTheCancelWorked: ("takes an acknowledgement for the end", "test_an_acknowledged_cancel"),
    CancelsWhatIsDone: ("tells a completed job as cancelled", "test_a_cancel_that_comes_too_late"),
    CancelsOnlyOnce: ("refuses a second cancel", "test_a_cancel_may_be_repeated"),
    AnswersAgain: ("sends an answer twice", "test_a_lost_reply_to_an_answer"),
    LosesAnswers: ("loses what was answered", "test_an_answer_arrives_once"),
    TrustsReplyToAnswers: ("reads no reply to an answer", "test_a_garbled_reply_to_an_answer"),
    DropsFalsyResults: ("drops results that are falsy", "test_results_are_whole"),
    ResultsAsText: ("turns results into text", "test_results_are_whole"),
    CutsResults: ("cuts results", "test_results_are_whole"),
    ChokesOnOddText: ("chokes on odd text", "test_odd_results_do_no_harm"),
    ReturnsMappings: ("returns a mapping", "test_tells_each_state"),
    StatusIsNotAsync: ("has a status call that is not async", "test_has_the_methods_of_a_driver"),
    DropsReasons: ("drops the reason of a failure", "test_tells_why_a_job_failed"),
    MixesUpStates: ("tells cancelled as failed", "test_tells_each_state"),
}


def driver_mutants() -> list[Mutant]:
    return [
        Mutant("driver", fault, type(kind.__name__, (PlainConformance,), {"driver": kind}), caught_by)
        for kind, (fault, caught_by) in BROKEN.items()
    ]
