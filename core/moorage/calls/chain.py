"""The interceptor chain: every credential goes through it, and it fails closed (CRED-1, CRED-2, PLUG-7)."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from moorage.accounts import Account
from moorage.calls.deadline import PausableDeadline
from moorage.contract.credentials import Headers, Interceptor, InterceptorSpec, Next, ToolCall
from moorage.contract.empty import EMPTY
from moorage.contract.errors import CredentialDenied, PluginError, PluginTimeout, ServerUnavailable
from moorage.contract.tools import ToolResult
from moorage.process_exit import is_exit

_log = logging.getLogger(__name__)
_FIXED_OBJECTS = ("server", "principal", "secrets")
_FIXED_TEXTS = ("tool", "phase", "thread_id", "run_id")


@dataclass(frozen=True, slots=True)
class BuiltInterceptor:
    """A spec with what it built. ``plugin`` names it in errors."""

    spec: InterceptorSpec
    interceptor: Interceptor
    plugin: str
    account: Account = field(default_factory=Account, compare=False)


def refusing(spec: InterceptorSpec, plugin: str) -> BuiltInterceptor:
    """Stands in for an interceptor that could not be built: its calls are denied, not sent without it."""

    async def refuses(call: ToolCall, follow: Next) -> ToolResult:
        raise CredentialDenied(
            f"interceptor {spec.name!r} of plugin {plugin!r} could not be built when the gateway started; "
            f"the {call.phase} call to server {call.server.name!r} is denied (see `moorage plugins`)"
        )

    return BuiltInterceptor(spec, refuses, plugin)


class InterceptorChain:
    """Runs calls through the interceptors that concern them, lowest precedence first (`InterceptorRunner`).

    Each one runs under its own deadline, which does not count the inner call. Whatever goes wrong in it
    denies the call: as `PluginError` with the plugin's name, or as the `CredentialDenied` that it raised.
    What the inner call raises, a cancellation of the caller, an exit of the process and LangGraph's control
    flow pass unchanged.
    """

    def __init__(self, built: Iterable[BuiltInterceptor]) -> None:
        self._built = tuple(sorted(built, key=lambda b: (b.spec.precedence, b.plugin, b.spec.name)))

    async def run(self, call: ToolCall, terminal: Next) -> ToolResult:
        """See `InterceptorRunner`."""
        concerned = [b for b in self._built if _concerns(b.spec, call)]
        if not concerned:
            return await terminal(call)
        private = replace(
            call,
            headers=Headers(call.headers, source=f"server {call.server.name!r}"),
            arguments=private_copy(call.arguments),
            secrets=private_copy(call.secrets) if call.secrets else EMPTY,
        )
        follow = terminal
        for built in reversed(concerned):
            follow = _link(built, follow)
        return await follow(private)


def _concerns(spec: InterceptorSpec, call: ToolCall) -> bool:
    return (
        call.phase in spec.phases
        and (spec.section is None or spec.section in call.server.sections)
        and not (spec.http_only and call.server.transport == "stdio")
    )


def _link(built: BuiltInterceptor, follow: Next) -> Next:
    async def linked(call: ToolCall) -> ToolResult:
        return await _Passage(built, call, follow).make()

    return linked


class _Passage:
    """One call's way through one interceptor."""

    __slots__ = (
        "_answered",
        "_built",
        "_call",
        "_deadline",
        "_done",
        "_errors",
        "_follow",
        "_headers",
        "_inner",
        "_inner_seconds",
        "_uses",
    )

    def __init__(self, built: BuiltInterceptor, call: ToolCall, follow: Next) -> None:
        self._built = built
        self._headers = call.headers
        # The interceptor gets a copy, so that these stay what they were checked to be.
        self._call = _copy(call, call.headers.copy(), call.arguments)
        self._follow = follow
        self._deadline = PausableDeadline(built.spec.timeout_seconds)
        self._uses = 0
        self._answered = False
        self._errors: list[BaseException] = []
        self._inner: set[asyncio.Task[Any]] = set()
        self._done = False
        self._inner_seconds = 0.0

    async def make(self) -> ToolResult:
        started = time.perf_counter()
        try:
            return await self._made()
        finally:
            self._built.account.spent(time.perf_counter() - started - self._inner_seconds)

    async def _made(self) -> ToolResult:
        deadline = self._deadline
        try:
            result = await deadline.run(_awaited(self._built.interceptor, self._call, self._next))
        except BaseException as raised:
            self._finish()
            judged = self._judged(raised)
            if judged is raised:
                raise
            raise judged from None
        running = self._finish()
        if deadline.cancelled_from_outside:
            raise asyncio.CancelledError  # it swallowed its caller's cancellation
        if deadline.expired:
            raise self._timeout()
        if not isinstance(result, ToolResult):
            raise self._fault(f"returned {_kind(result)} instead of a ToolResult")
        if not self._built.spec.answers:
            if running:
                raise self._fault("returned before the call that it had begun")
            if not self._answered:
                how = "after the call had failed" if self._errors else "without making the call"
                raise self._fault(f"answered {how}, and its spec does not say that it answers")
        return result

    async def _next(self, call: ToolCall) -> ToolResult:
        if self._done:
            raise self._fault("made the call after it had returned")
        if self._uses and not self._built.spec.retries:
            raise self._fault("made the call twice, and its spec does not say that it retries")
        accepted = self._accepted(call)
        self._uses += 1
        task = asyncio.current_task()
        assert task is not None
        self._inner.add(task)
        self._deadline.pause()
        started = time.perf_counter()
        try:
            result = await self._follow(accepted)
        except BaseException as raised:
            self._errors.append(raised)
            raise
        else:
            self._answered = True
            return result
        finally:
            self._inner.discard(task)
            self._inner_seconds += time.perf_counter() - started
            self._deadline.resume()

    def _accepted(self, changed: object) -> ToolCall:
        """The changed call, checked: only headers and arguments may differ (CRED-2)."""
        given = self._call
        if type(changed) is not ToolCall:
            raise self._fault(f"handed on {_kind(changed)} instead of a ToolCall")
        for name in _FIXED_OBJECTS:
            if getattr(changed, name) is not getattr(given, name):
                raise self._fault(f"changed the call's {name}; it may change headers and arguments only")
        for name in _FIXED_TEXTS:
            if getattr(changed, name) != getattr(given, name):
                raise self._fault(f"changed the call's {name}; it may change headers and arguments only")
        arguments = changed.arguments
        if not isinstance(arguments, Mapping) or not all(isinstance(key, str) for key in arguments):
            raise self._fault("handed on arguments that are no mapping of names to values")
        if type(changed.headers) is not Headers:
            raise self._fault(f"handed on headers that are {_kind(changed.headers)}")
        headers = changed.headers.rechecked(self._headers, source=self._label)
        if self._built.spec.retries:
            arguments = private_copy(arguments)  # a second try must not see what the first one's chain did
        return _copy(given, headers, arguments)

    def _finish(self) -> bool:
        """Close the door behind it; whether an inner call was still under way. That one is cancelled."""
        self._done = True
        running = [task for task in self._inner if task is not asyncio.current_task()]
        for task in running:
            task.cancel()
        return bool(running)

    def _judged(self, raised: BaseException) -> BaseException:
        """What to raise for what the interceptor raised."""
        deadline = self._deadline
        if any(raised is error for error in self._errors) or is_exit(raised):
            return raised
        if deadline.cancelled_from_outside:
            return raised if isinstance(raised, asyncio.CancelledError) else asyncio.CancelledError()
        if deadline.expired:
            return self._timeout()
        if isinstance(raised, CredentialDenied) and not self._sent():
            return raised
        if _is_control_flow(raised):
            return raised
        if isinstance(raised, PluginError) and raised.plugin == self._built.plugin:
            return raised
        if isinstance(raised, asyncio.CancelledError):
            return self._fault("was cancelled by itself")
        return self._fault(f"raised {type(raised).__name__} ({_place(raised)})")

    def _sent(self) -> bool:
        """Whether the server may have done what was asked."""
        return self._answered or bool(self._inner) or any(map(_may_have_had_effect, self._errors))

    @property
    def _label(self) -> str:
        return f"interceptor {self._built.spec.name!r} of plugin {self._built.plugin!r}"

    def _timeout(self) -> PluginError:
        seconds = self._built.spec.timeout_seconds
        return self._report(
            PluginTimeout(self._message(f"took more than {seconds:g} seconds"), plugin=self._built.plugin)
        )

    def _fault(self, what: str) -> PluginError:
        return self._report(PluginError(self._message(what), plugin=self._built.plugin))

    def _message(self, what: str) -> str:
        # Neither the exception's text nor a value: both may hold the credential (CRED-9).
        call = self._call
        return (
            f"interceptor {self._built.spec.name!r} {what}; "
            f"the {call.phase} call to server {call.server.name!r} is denied"
        )

    def _report(self, error: PluginError) -> PluginError:
        error.__dict__["sent"] = self._sent()
        self._built.account.failed(str(error))
        _log.warning("%s", error)
        return error


def private_copy(value: Any) -> Any:
    """A copy of JSON-like data; anything else in it is kept as it is."""
    kind = type(value)
    if kind is str or kind is int or value is None:
        return value
    if kind is dict or isinstance(value, Mapping):
        return {key: private_copy(item) for key, item in value.items()}
    if isinstance(value, list):
        return [private_copy(item) for item in value]
    if isinstance(value, tuple):
        return tuple(private_copy(item) for item in value)
    return value


def _copy(call: ToolCall, headers: Headers, arguments: Mapping[str, Any]) -> ToolCall:
    return ToolCall(
        call.server,
        call.tool,
        arguments,
        headers,
        call.phase,
        call.principal,
        call.secrets,
        call.thread_id,
        call.run_id,
    )


async def _awaited(interceptor: Callable[..., Any], call: ToolCall, follow: Next) -> object:
    made = interceptor(call, follow)
    return await made if isinstance(made, Awaitable) else made


def _may_have_had_effect(error: BaseException) -> bool:
    if isinstance(error, CredentialDenied):
        return False
    if isinstance(error, ServerUnavailable) and error.http_status == 401:
        return False
    return getattr(error, "sent", True) is not False


def _is_control_flow(raised: BaseException) -> bool:
    # By name, since the core knows no agent library; all of LangGraph's interrupts and commands derive
    # from this one.
    return any(
        kind.__name__ == "GraphBubbleUp" and kind.__module__.partition(".")[0] == "langgraph"
        for kind in type(raised).__mro__
    )


def _kind(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def _place(raised: BaseException) -> str:
    """Where it was raised, innermost frame, as ``file:line``: all that is safe to tell of an exception."""
    traceback = raised.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None:
        return "place unknown"
    return f"{traceback.tb_frame.f_code.co_filename.rpartition('/')[2]}:{traceback.tb_lineno}"
