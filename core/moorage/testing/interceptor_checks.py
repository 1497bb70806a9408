"""The checks of `InterceptorConformance` (CRED-1, 2, 5, 7, 8, 9, PLUG-2, PLUG-3, PLUG-7)."""

import asyncio
import copy
import logging
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from moorage.calls.chain import BuiltInterceptor
from moorage.contract import (
    CredentialDenied,
    InterceptorSpec,
    MoorageError,
    Next,
    PluginError,
    ServerUnavailable,
    ToolCall,
    ToolResult,
)
from moorage.testing.checks import NotApplicable, Shortfall, check, outcome, told
from moorage.testing.watching import Heartbeat, must_obey_cancellation

if TYPE_CHECKING:
    from moorage.testing.interceptor import InterceptorBench

CALL_SECONDS = 5.0
USERS = ("alice", "bob", "carol", "dave")
# Long enough that it would not turn up by chance.
_TELLING_CHARACTERS = 6


class HeaderChecks:
    """What reaches the server."""

    @check("PLUG-2", "PLUG-3", rule="the contribution is one that the host accepts")
    async def test_the_host_accepts_the_spec(self, bench: "InterceptorBench") -> None:
        from moorage.host.hooks import HOOKS, fault_of

        fault = fault_of(HOOKS["moorage_credential_interceptors"], bench.spec)
        if fault:
            raise Shortfall(f"the hook contributes {fault}")

    @check("CRED-5", rule="the user's credential reaches the server")
    async def test_sets_what_it_is_there_for(self, bench: "InterceptorBench") -> None:
        for user in USERS[:2]:
            await _done(bench, bench.suite.call(user))
            _must_have(bench, bench.terminal.calls[-1], user)

    @check("CRED-1", rule="it writes over lower precedences, and leaves the last word to higher ones")
    async def test_keeps_its_precedence(self, bench: "InterceptorBench") -> None:
        expected = bench.suite.expects("alice")
        if not expected:
            raise NotApplicable("it sets no header (expects)")
        seen: list[Mapping[str, str]] = []
        lower = _writer(bench, -1, dict.fromkeys(expected, "lower"))
        await _done(bench, bench.suite.call(), lower)
        _must_have(bench, bench.terminal.calls[-1], "alice")
        higher = _writer(bench, +1, dict.fromkeys(expected, "higher"), seen)
        await _done(bench, bench.suite.call(), higher)
        if not all(seen[-1].get(name) == value for name, value in expected.items()):
            raise Shortfall("a later interceptor does not see what it set: it ran after that one")
        arrived = bench.terminal.calls[-1].headers
        if any(arrived.get(name) != "higher" for name in expected):
            raise Shortfall("a later interceptor's header did not win")

    @check("CRED-2", rule="a header in another spelling is replaced, so that one of them reaches the wire")
    async def test_replaces_other_spellings(self, bench: "InterceptorBench") -> None:
        expected = bench.suite.expects("alice")
        if not expected:
            raise NotApplicable("it sets no header (expects)")
        await _done(bench, bench.suite.call(headers={name.swapcase(): "old" for name in expected}))
        arrived = bench.terminal.calls[-1].headers
        for name, value in expected.items():
            spellings = [other for other in arrived if other.lower() == name.lower()]
            if len(spellings) != 1 or arrived[name] != value:
                raise Shortfall(f"the header arrived as {spellings}, or with the old value")

    @check("CRED-1", rule="what does not concern it passes untouched: other headers, tool, arguments")
    async def test_leaves_the_rest_alone(self, bench: "InterceptorBench") -> None:
        call = bench.suite.call(headers={"X-Unrelated": "stays"})
        await _done(bench, call)
        arrived = bench.terminal.calls[-1]
        if arrived.headers.get("X-Unrelated") != "stays":
            raise Shortfall("a header that it has no business with is gone or changed")
        if not bench.suite.changes_arguments and dict(arrived.arguments) != dict(call.arguments):
            raise Shortfall(f"the arguments arrived as {sorted(arrived.arguments)}")
        if (arrived.tool, arrived.server.name) != (call.tool, call.server.name):
            raise Shortfall("another tool or server was called")

    @check("PLUG-7", rule="it changes copies: the call, its arguments and secrets are as they were")
    async def test_mutates_nothing(self, bench: "InterceptorBench") -> None:
        call = bench.suite.call(headers={"X-Unrelated": "stays"})
        before = _insides(call)
        await outcome(CALL_SECONDS, bench.interceptor(call, bench.terminal), "the call")
        if _insides(call) != before:
            raise Shortfall("arguments, headers, secrets or the server's config have changed in place")

    @check("CRED-8", rule="concurrent calls of several users do not mix")
    async def test_users_do_not_mix(self, bench: "InterceptorBench") -> None:
        async def pause() -> None:
            await asyncio.sleep(0.01)

        bench.terminal.waits_for = pause
        calls = [bench.suite.call(user, arguments={"user": user}) for user in USERS * 5]
        for answer in await asyncio.gather(*(_outcome(bench, call) for call in calls)):
            if isinstance(answer, BaseException):
                raise Shortfall(f"one of {len(calls)} concurrent calls raised {told(answer)}") from answer
        for arrived in bench.terminal.calls:
            principal = arrived.principal
            _must_have(bench, arrived, principal.user_id if principal else "nobody")


class ConductChecks:
    """How it behaves where something goes wrong."""

    @check("PLUG-7", rule="it makes the call once and returns the server's own answer")
    async def test_calls_once_and_returns_the_answer(self, bench: "InterceptorBench") -> None:
        from moorage.testing.interceptor import ANSWER

        answer = await outcome(CALL_SECONDS, bench.interceptor(bench.suite.call(), bench.terminal), "it")
        if isinstance(answer, BaseException):
            raise Shortfall(f"an ordinary call raised {told(answer)}") from answer
        if not isinstance(answer, ToolResult):
            raise Shortfall(f"it returned {told(answer)} instead of a ToolResult")
        if len(bench.terminal.calls) != 1 and not bench.spec.answers:
            raise Shortfall(f"it made the call {len(bench.terminal.calls)} times")
        if answer is not ANSWER and not bench.spec.answers:
            raise Shortfall("the answer that it returned is not the server's")

    @check("PLUG-7", rule="an error of the call passes unchanged, and is not retried unless the spec says so")
    async def test_errors_pass(self, bench: "InterceptorBench") -> None:
        for error in (
            ServerUnavailable("no connection", server="s", sent=False),
            ServerUnavailable("the server answered with 500", server="s", http_status=500),
            CredentialDenied("a later interceptor refused"),
            RuntimeError("something in the agent library"),
        ):
            bench.terminal.calls.clear()
            bench.terminal.raises = error
            came = await outcome(CALL_SECONDS, bench.interceptor(bench.suite.call(), bench.terminal), "it")
            if came is not error and not (bench.spec.answers or bench.spec.retries):
                raise Shortfall(f"the call raised {told(error)}, and it came to {told(came)}")
            if not isinstance(came, BaseException) and not bench.spec.answers:
                raise Shortfall(f"it swallowed {told(error)}")
            if len(bench.terminal.calls) > 1 and not bench.spec.retries:
                raise Shortfall(f"it made the call {len(bench.terminal.calls)} times after {told(error)}")

    @check("PLUG-7", rule="a cancellation passes promptly, and leaves nothing running")
    async def test_cancellation_passes(self, bench: "InterceptorBench") -> None:
        bench.terminal.waits_for = asyncio.Event().wait
        call = bench.suite.call()
        await must_obey_cancellation(
            lambda: bench.interceptor(call, bench.terminal), lambda: bench.terminal.calls, "a call"
        )

    @check("PLUG-7", rule="it does not block the event loop")
    async def test_does_not_block_the_event_loop(self, bench: "InterceptorBench") -> None:
        async with Heartbeat() as heart:
            for user in USERS:
                await _outcome(bench, bench.suite.call(user))
        heart.must_be_steady()

    @check("CRED-5", rule="a call without a usable credential is denied before anything is sent")
    async def test_fails_closed(self, bench: "InterceptorBench") -> None:
        refused = bench.suite.refused()
        if not refused:
            raise NotApplicable("it denies no call (refused)")
        for number, call in enumerate(refused, start=1):
            came = await _outcome(bench, call)
            if bench.terminal.calls:
                raise Shortfall(f"call {number} of refused() reached the server")
            if not isinstance(came, CredentialDenied):
                raise Shortfall(f"call {number} of refused() came to {told(came)}, not CredentialDenied")
        await _done(bench, bench.suite.call())

    @check("CRED-4", "CRED-5", rule="where its source fails, calls are denied and never sent without")
    async def test_a_broken_source_denies(self, bench: "InterceptorBench") -> None:
        bench.suite.break_source()
        came = await _outcome(bench, bench.suite.call())
        if bench.terminal.calls:
            raise Shortfall("the call reached the server without a credential")
        if not isinstance(came, Exception):
            raise Shortfall(f"it came to {told(came)}")

    @check("CRED-2", rule="a value that HTTP cannot carry, or of a wrong type, is denied and not quoted")
    async def test_odd_secrets_are_denied(self, bench: "InterceptorBench") -> None:
        secrets = bench.suite.secrets("alice")
        if not secrets:
            raise NotApplicable("the run carries no secrets for it (secrets)")
        for odd in ("line\nbreak-8c1b", " blank-8c1b ", "", "umlaut-ü-8c1b", 17, None, ["list-8c1b"]):
            changed = _with_leaves(secrets, odd)
            came = await _outcome(bench, bench.suite.call(secrets=changed))
            if isinstance(came, BaseException) and not isinstance(came, MoorageError):
                raise Shortfall(f"a secret {odd!r} made it raise {told(came)}") from came
            if isinstance(came, PluginError):
                raise Shortfall(f"a secret {odd!r} made it fall over: {told(came)}")
            if isinstance(odd, str) and odd and odd.strip() in str(came):
                raise Shortfall(f"the error quotes the secret: {told(came)}")

    @check("CRED-7", rule="a background call has no secrets: it passes with what it needs, or is denied")
    async def test_background_calls_have_no_secrets(self, bench: "InterceptorBench") -> None:
        for phase in ("status", "cancel"):
            if phase not in bench.spec.phases:
                continue
            came = await _outcome(bench, bench.suite.background(phase))
            if isinstance(came, BaseException) and not isinstance(came, CredentialDenied):
                raise Shortfall(f"a {phase} call outside the run raised {told(came)}") from came

    @check("CRED-7", rule="discovery belongs to no user: it passes or is denied, and never falls over")
    async def test_a_call_of_nobody(self, bench: "InterceptorBench") -> None:
        for phase in ("discover", "call"):
            if phase not in bench.spec.phases:
                continue
            came = await _outcome(bench, bench.suite.call(None, phase=phase))
            if isinstance(came, BaseException) and not isinstance(came, CredentialDenied):
                raise Shortfall(f"a {phase} call without a principal raised {told(came)}") from came

    @check("CRED-9", rule="no error, log line or repr shows a credential")
    async def test_shows_no_credential(self, bench: "InterceptorBench") -> None:
        hidden = set(_leaves(bench.suite.secrets("alice"))) | set(bench.suite.expects("alice").values())
        hidden |= set(bench.suite.hidden())
        shown: list[str] = []
        with _logged(shown):
            await _outcome(bench, bench.suite.call())
            shown += [repr(bench.interceptor), repr(bench.spec)]
            for call in bench.suite.refused():
                shown.append(_all_of(await _outcome(bench, call)))
            bench.terminal.raises = RuntimeError("something went wrong")
            shown.append(_all_of(await _outcome(bench, bench.suite.call())))
            try:
                bench.suite.break_source()
            except NotApplicable:
                pass
            else:
                shown.append(_all_of(await _outcome(bench, bench.suite.call())))
        for value in hidden:
            if len(value) >= _TELLING_CHARACTERS and any(value in text for text in shown):
                raise Shortfall("a credential stands in an error, a log line or a repr")


async def _outcome(bench: "InterceptorBench", call: ToolCall) -> Any:
    return await outcome(CALL_SECONDS, bench.run(call), "the call")


async def _done(bench: "InterceptorBench", call: ToolCall, *others: BuiltInterceptor) -> None:
    came = await outcome(CALL_SECONDS, bench.run(call, *others), "the call")
    if isinstance(came, BaseException):
        raise Shortfall(f"an ordinary call raised {told(came)}") from came


def _must_have(bench: "InterceptorBench", arrived: ToolCall, user: str) -> None:
    for name, value in bench.suite.expects(user).items():
        if arrived.headers.get(name) != value:
            there = "another value" if name in arrived.headers else "no such header"
            raise Shortfall(f"header {name!r} of user {user!r} reached the server with {there}")


def _writer(
    bench: "InterceptorBench",
    offset: int,
    headers: Mapping[str, str],
    seen: list[Mapping[str, str]] | None = None,
) -> BuiltInterceptor:
    async def write(call: ToolCall, follow: Next) -> ToolResult:
        if seen is not None:
            seen.append(dict(call.headers))
        for name, value in headers.items():
            call = call.with_header(name, value, source="probe")
        return await follow(call)

    spec = InterceptorSpec("probe", bench.spec.precedence + offset, lambda _: write)
    return BuiltInterceptor(spec, write, "probe")


def _insides(call: ToolCall) -> Any:
    sections = {name: repr(model) for name, model in call.server.sections.items()}
    return copy.deepcopy((dict(call.headers), dict(call.arguments), dict(call.secrets), sections))


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, str):
        yield value


def _with_leaves(value: Any, leaf: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _with_leaves(item, leaf) for key, item in value.items()}
    return leaf


def _all_of(value: object) -> str:
    if isinstance(value, BaseException):
        return "".join(traceback.format_exception_only(value)) + repr(vars(value))
    return ""


@contextmanager
def _logged(lines: list[str]) -> Iterator[None]:
    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    handler, root = Keep(logging.DEBUG), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        root.setLevel(level)
        root.removeHandler(handler)
