"""Every hook and every method of every object that a hook contributes, against every kind of fault.

The hooks come from the hookspecs and the methods from the Protocols that ``build`` returns, so that a new one
without a case fails here (PLUG-4, PLUG-7, C69, C70).
"""

import asyncio
import inspect
import time
import types
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from support.fake_driver import FakeDriver
from support.memory_tasks import MemoryTasks

from moorage import contract
from moorage.accounts import Account
from moorage.calls.chain import BuiltInterceptor, InterceptorChain
from moorage.clock import SystemClock
from moorage.contract import (
    AdmissionRejected,
    AttentionKind,
    AuthRequest,
    CallContext,
    ConfigSection,
    GatewayContext,
    Headers,
    InterceptorSpec,
    LaunchRefused,
    LaunchRequest,
    LifecycleSpec,
    Notification,
    PluginError,
    Principal,
    RunRequest,
    TaskBinding,
    TaskDriverSpec,
    TaskRef,
    TaskStatus,
    ToolCall,
    ToolResult,
    hookimpl,
    hookspecs,
)
from moorage.gateway import lifecycles
from moorage.gateway.building import Builder, Built
from moorage.gateway.hints import RoutingHints
from moorage.gateway.launches import LaunchJudges
from moorage.gateway.lifecycles import entered
from moorage.gateway.parts import Drivers
from moorage.gateway.sources import ToolSources
from moorage.host import Candidate, Contribution, PluginHost, PluginState, load_plugins
from moorage.host.hooks import HOOKS
from moorage.runs.admission import Admission, NamedValidator
from moorage.runs.directory import NamedAssistant
from moorage.settings import TaskSettings
from moorage.tasks.asking import Asker
from moorage.tasks.delivery import Courier
from moorage.tasks.drivers import NamedDriver
from moorage.tasks.service import TaskService
from moorage.testing import gateway_context, server_config
from moorage_api.auth.authentication import NamedAuthenticator
from moorage_drivers.mcp.claims import claims_of

ROOT = Path(__file__).parents[2]
NAMES = sorted(name for name in vars(hookspecs) if name.startswith("moorage_"))


class Odd(BaseException):
    """What nobody expects."""


def _raise(kind: type[BaseException]) -> Callable[[], Any]:
    def fault() -> Any:
        raise kind("on purpose")

    return fault


def _hang() -> Any:
    time.sleep(3)  # in the worker's thread, which is given up long before


LOAD_FAULTS: dict[str, tuple[Callable[[], Any], str]] = {
    "raises": (_raise(ValueError), "ValueError: on purpose"),
    "SystemExit": (_raise(SystemExit), "SystemExit"),
    "KeyboardInterrupt": (_raise(KeyboardInterrupt), "KeyboardInterrupt"),
    "BaseException": (_raise(Odd), "Odd"),
    "CancelledError": (_raise(asyncio.CancelledError), "CancelledError"),
    "hangs": (_hang, "took more than 0.15 seconds; it was given up"),
    "None": (lambda: None, "None instead of an iterable"),
    "number": (lambda: 42, "int instead of an iterable"),
    "texts": (lambda: ["text"], "str"),
    "breaks off": (lambda: (1 / 0 for _ in "x"), "ZeroDivisionError"),
    "unbounded": (lambda: iter(int, 1), "more than 10,000 contributions"),
}


def _plugin(name: str, hook: str, function: Callable[[], Any]) -> Candidate:
    module = types.ModuleType(name)

    def implementation() -> Any:
        return function()

    implementation.__name__ = hook
    setattr(module, hook, hookimpl(implementation))
    return Candidate(name, f"dist-{name}", "1.2", name, lambda: module)


def _sections(name: str) -> Candidate:
    return _plugin(name, "moorage_config_sections", lambda: [ConfigSection(name, lambda: BaseModel)])


@pytest.mark.req("PLUG-4", "PLUG-7")
@pytest.mark.parametrize("fault", LOAD_FAULTS)
@pytest.mark.parametrize("hook", NAMES)
def test_a_hook_that_misbehaves_costs_its_plugin_alone(hook: str, fault: str) -> None:
    """C70: nothing of it stays, though its other hook had gone well."""
    function, told = LOAD_FAULTS[fault]
    bad = _plugin("bad", hook, function)
    if hook > "moorage_config_sections":  # hooks are called by name: this one has its say first
        module = bad.load()
        _sections_of = hookimpl(lambda: [ConfigSection("half", lambda: BaseModel)])
        module.moorage_config_sections = _sections_of
    host = load_plugins(candidates=[bad, _sections("good")], timeout_seconds=0.15, check=False)
    report = host.report("bad")
    assert report is not None
    assert report.state is PluginState.FAILED
    assert report.error is not None
    assert hook in report.error
    assert told in report.error
    assert report.contributions == ()
    assert [one.plugin for one in host.sections()] == ["good"]


@pytest.mark.req("PLUG-4")
@pytest.mark.parametrize("fault", ["raises", "SystemExit", "KeyboardInterrupt", "BaseException", "hangs"])
def test_an_import_that_misbehaves_costs_its_plugin_alone(fault: str) -> None:
    """C69: a hanging import is given up after a deadline, and named."""
    function, told = LOAD_FAULTS[fault]
    bad = Candidate("bad", "dist-bad", "1.2", "bad_module", function)
    host = load_plugins(candidates=[bad, _sections("good")], timeout_seconds=0.15, check=False)
    report = host.report("bad")
    assert report is not None
    assert report.state is PluginState.FAILED
    assert report.source == "dist-bad 1.2"
    assert "importing it" in (report.error or "")
    assert told in (report.error or "")
    assert host.counted() == "loaded 1 of 2 plugins"


# --- what the objects do later


async def _araise(kind: type[BaseException]) -> Any:
    raise kind("on purpose")


async def _ahang() -> Any:
    await asyncio.Event().wait()


async def _rubbish() -> Any:
    return object()


RUN_FAULTS: dict[str, Callable[[], Awaitable[Any]]] = {
    "raises": lambda: _araise(ValueError),
    "sys.exit": lambda: _araise(SystemExit),
    "BaseException": lambda: _araise(Odd),
    "cancels itself": lambda: _araise(asyncio.CancelledError),
    "rubbish": _rubbish,
}
SYNC_FAULTS: dict[str, Callable[[], Any]] = {
    "raises": _raise(ValueError),
    "sys.exit": _raise(SystemExit),
    "BaseException": _raise(Odd),
    "cancels itself": _raise(asyncio.CancelledError),
    "rubbish": object,
}
WHO = CallContext(principal=Principal("somebody"))
SERVER = server_config("s", transport="http")
BINDING = TaskBinding("bad", "t")
REF = TaskRef("task", "s", BINDING, "remote", WHO)
NOTE = Notification(
    "d", "task", "t", 1, 0, AttentionKind.TERMINAL, TaskStatus.COMPLETED, "u", "th", None, "s"
)
Case = Callable[[Any, Account], Awaitable[None]]


def _bad(method: str, answer: Callable[[], Any]) -> Any:
    """An object of which one method misbehaves; it takes anything."""
    return types.SimpleNamespace(**{method: lambda *_, **__: answer()})


async def _interceptor(bad: Any, account: Account) -> None:
    async def answered(call: ToolCall) -> ToolResult:
        return ToolResult()

    spec = InterceptorSpec("bad", 1, lambda context: bad.__call__)
    chain = InterceptorChain([BuiltInterceptor(spec, bad.__call__, "bad", account)])
    with pytest.raises(PluginError):
        await chain.run(ToolCall(SERVER, "t", {}, Headers(), "call", WHO.principal), answered)


def _asked(method: str) -> Case:
    async def case(bad: Any, account: Account) -> None:
        asker = Asker(TaskSettings(), str)
        named = NamedDriver("bad", "bad", bad, account)
        reply = await (asker.status(named, REF) if method == "get_status" else asker.cancel(named, REF))
        assert reply.error is not None

    return case


async def _deliver(bad: Any, account: Account) -> None:
    delivery = await Courier("bad", bad, str, account=account).deliver(NOTE)
    assert delivery.unsure


async def _validate(bad: Any, account: Account) -> None:
    admission = Admission([NamedValidator("bad", "bad", bad, account)])
    with pytest.raises(AdmissionRejected, match="bad"):
        await admission.admit(RunRequest("th", "a", WHO.principal))


async def _authenticate(bad: Any, account: Account) -> None:
    with pytest.raises(PluginError):
        await NamedAuthenticator("bad", bad, account).ask(AuthRequest({}))


async def _hint(bad: Any, account: Account) -> None:
    assert RoutingHints([Built("bad", "bad", bad, account)]).hint(SERVER, "t") is None


async def _launch(bad: Any, account: Account) -> None:
    host = PluginHost([], [])
    request = LaunchRequest(server="s", transport="stdio", command="x")
    with pytest.raises(LaunchRefused):
        LaunchJudges([Built("bad", "bad", bad, account)], host).judge([request])
    for failure in host.failures("bad"):
        account.failed(failure.text)


def _sourced(method: str) -> Case:
    async def case(bad: Any, account: Account) -> None:
        sources = ToolSources([Built("bad", "bad", bad, account)])
        arguments = {"tools": (WHO,), "close_thread": ("u", "t")}.get(method, ())
        assert not await getattr(sources, method)(*arguments)

    return case


def _stateful(method: str, *arguments: Any) -> Case:
    async def case(bad: Any, account: Account) -> None:
        with pytest.raises(PluginError):
            await getattr(NamedAssistant("bad", "", bad, account=account), method)("th", *arguments)

    return case


async def _submit(bad: Any, account: Account) -> None:
    named = NamedDriver("bad", "bad", bad, account)
    service = TaskService(
        repository=MemoryTasks(SystemClock()),
        drivers={"bad": named},
        settings=TaskSettings(),
        clock=SystemClock(),
        owner="here",
        wake=lambda: None,
    )
    with pytest.raises(PluginError):
        await service.submit(server="s", binding=BINDING, arguments={}, context=WHO)
    await service.aclose()


CASES: dict[tuple[str, str], Case] = {
    ("Interceptor", "__call__"): _interceptor,
    ("TaskDriver", "submit"): _submit,
    ("TaskDriver", "get_status"): _asked("get_status"),
    ("TaskDriver", "cancel"): _asked("cancel"),
    ("NotificationSink", "deliver"): _deliver,
    ("RunValidator", "validate"): _validate,
    ("Authenticator", "authenticate"): _authenticate,
    ("RoutingHintProvider", "hint"): _hint,
    ("LaunchValidator", "validate"): _launch,
    ("Assistant", "state"): _stateful("state"),
    ("Assistant", "update_state"): _stateful("update_state", {}),
    ("Assistant", "delete_thread"): _stateful("delete_thread"),
    ("ToolSource", "tools"): _sourced("tools"),
    ("ToolSource", "servers"): _sourced("servers"),
    ("ToolSource", "reset"): _sourced("reset"),
    ("ToolSource", "close_thread"): _sourced("close_thread"),
}
ELSEWHERE: dict[tuple[str, str], str] = {
    # What needs more than the object: the test that has its faults, by file and words.
    ("TaskDriver", "claim"): "tests/host/test_fault_matrix.py: test_a_claim_that_misbehaves",
    ("Assistant", "stream"): "tests/runs/test_run_lifecycle.py: test_an_assistant_that_cancels_itself",
    ("Assistant", "history"): "tests/host/test_fault_matrix.py: test_an_assistants_history",
}
ANSWERS_NOTHING = {("ToolSource", "reset"), ("ToolSource", "close_thread"), ("Assistant", "delete_thread")}
"""There is no rubbish that they could return: nobody looks."""


def _protocols() -> dict[str, list[str]]:
    """Protocol → methods, of all that ``build`` of a contribution returns."""
    found: dict[str, list[str]] = {}
    for hook in HOOKS.values():
        annotation = str(inspect.get_annotations(hook.spec).get("build", ""))
        if not annotation:
            continue
        name = annotation.rpartition(",")[2].strip(" ]").partition(" |")[0]
        protocol = getattr(contract, name)
        found[name] = [
            method
            for method, value in vars(protocol).items()
            if inspect.isfunction(value) and (not method.startswith("_") or method == "__call__")
        ]
    return found


METHODS = sorted((name, method) for name, methods in _protocols().items() for method in methods)


def test_no_hook_and_no_method_is_forgotten() -> None:
    assert set(NAMES) == set(HOOKS)
    assert len(METHODS) > 12
    assert {one for one in METHODS if one not in ELSEWHERE} == set(CASES)
    for where in ELSEWHERE.values():
        file, _, words = where.partition(": ")
        assert words in (ROOT / file).read_text(), where


@pytest.mark.req("PLUG-7")
@pytest.mark.parametrize("fault", RUN_FAULTS)
@pytest.mark.parametrize(("protocol", "method"), sorted(CASES))
async def test_a_method_that_misbehaves_is_contained_and_named(
    protocol: str, method: str, fault: str
) -> None:
    if fault == "rubbish" and (protocol, method) in ANSWERS_NOTHING:
        fault = "raises"
    faults: dict[str, Callable[[], Any]] = dict(
        RUN_FAULTS
        if inspect.iscoroutinefunction(getattr(getattr(contract, protocol), method))
        else SYNC_FAULTS
    )
    account = Account("bad")
    async with asyncio.timeout(20):
        await CASES[protocol, method](_bad(method, faults[fault]), account)
    assert account.failures, "the fault is on the plugin's account"
    task = asyncio.current_task()
    assert task is not None
    assert not task.cancelling()


@pytest.mark.req("PLUG-7")
@pytest.mark.parametrize("fault", SYNC_FAULTS)
def test_a_claim_that_misbehaves_costs_its_driver_alone(tmp_path: Path, fault: str) -> None:
    good = FakeDriver()
    drivers = {"bad": _bad("claim", SYNC_FAULTS[fault]), "good": good}
    gateway = gateway_context(tmp_path)
    gateway.provide(
        contract.TaskDriverRegistry, Drivers({n: NamedDriver(n, n, one) for n, one in drivers.items()})
    )
    (error,) = claims_of(gateway, SERVER, ["t"]).errors
    assert "plugin 'bad': task driver 'bad' failed" in error


@pytest.mark.req("PLUG-7")
async def test_an_assistants_history_that_breaks_off_is_a_fault_of_its_plugin() -> None:
    async def breaks(*_: object, **__: object) -> AsyncIterator[object]:
        for _ in ():
            yield None
        raise ValueError("torn page")

    account = Account("bad")
    named = NamedAssistant("bad", "", _bad("history", lambda: breaks()), account=account)
    with pytest.raises(PluginError, match="a thread's history"):
        _ = [state async for state in named.history("th")]
    assert "ValueError" in account.failures[0].text


# --- building and the gateway's life


def _builder(tmp_path: Path, host: PluginHost) -> Builder:
    return Builder(host, gateway_context(tmp_path), strict=False)


@pytest.mark.req("PLUG-7")
@pytest.mark.parametrize("fault", SYNC_FAULTS)
async def test_an_object_that_cannot_be_built_costs_only_itself(tmp_path: Path, fault: str) -> None:
    kinds: dict[str, Callable[[], Any]] = {**SYNC_FAULTS, "rubbish": lambda: None}
    host = PluginHost([], [])
    bad = TaskDriverSpec("bad", lambda context: kinds[fault]())
    good = TaskDriverSpec("good", lambda context: FakeDriver())
    built = _builder(tmp_path, host).all([Contribution(bad, "bad"), Contribution(good, "good")])
    assert [one.name for one in built] == ["good"]
    assert "'bad' could not be built" in host.failures("bad")[0].text


@pytest.mark.req("PLUG-2", "PLUG-7")
@pytest.mark.parametrize("when", ["entered", "left"])
@pytest.mark.parametrize("fault", ["raises", "hangs"])
async def test_a_life_cycle_that_misbehaves_costs_only_itself(
    tmp_path: Path, when: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycles, "LIFECYCLE_SECONDS", 0.05)

    async def misbehave(now: str) -> None:
        if now == when:
            await (_ahang() if fault == "hangs" else _araise(ValueError))

    @asynccontextmanager
    async def life(context: GatewayContext) -> AsyncIterator[None]:
        await misbehave("entered")
        yield
        await misbehave("left")

    host = PluginHost([], [])
    served = False
    async with entered(Contribution(LifecycleSpec("bad", 1, life), "bad"), _builder(tmp_path, host)):
        served = True
    assert served
    assert f"life-cycle 'bad' could not be {when}" in host.failures("bad")[0].text
