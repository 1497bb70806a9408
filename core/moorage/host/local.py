"""Local code that is no package: ``mcpInterceptors`` (PLUG-9)."""

import contextlib
import inspect
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moorage.contract import PRECEDENCE_LOCAL, ConfigError, Interceptor, InterceptorSpec
from moorage.host.discovery import import_object
from moorage.host.hooks import HOOKS, fault_of
from moorage.host.loading import LOAD_TIMEOUT_SECONDS
from moorage.host.registry import Contribution, PluginHost
from moorage.host.reports import ContributionInfo, LoadReport, PluginState, describe
from moorage.host.worker import GivenUp, Worker

if TYPE_CHECKING:
    from moorage.contract import GatewayContext

HOOK = HOOKS["moorage_credential_interceptors"]


def load_local_interceptors(
    paths: Sequence[str],
    *,
    search: Path | None = None,
    timeout_seconds: float = LOAD_TIMEOUT_SECONDS,
) -> tuple[Contribution[InterceptorSpec], ...]:
    """The interceptors that ``mcpInterceptors`` asks for, in the order of the list.

    Each path is ``module:builder``. The builder takes the `GatewayContext` or nothing and returns an
    interceptor; it is called at start. An attribute ``precedence`` of the builder places it in the chain,
    otherwise it comes after the built-in ones. A path may also name an `InterceptorSpec`. ``search`` is
    the folder where modules are looked for after the installed ones.

    Raises `ConfigError` that names the path which cannot be loaded: a gap in the chain is never silent.
    """
    if search is not None and str(search) not in sys.path:
        sys.path.append(str(search))
    with contextlib.redirect_stdout(sys.stderr), Worker() as worker:
        return tuple(
            Contribution(_spec(worker, path, place, timeout_seconds), f"local:{path}")
            for place, path in enumerate(paths)
        )


def with_local_interceptors(
    host: PluginHost, paths: Sequence[str], *, search: Path | None = None
) -> PluginHost:
    """A host that has these interceptors too, in its chain and in its reports; raises `ConfigError`."""
    if not paths:
        return host
    started = time.perf_counter()
    loaded = load_local_interceptors(paths, search=search)
    seconds = (time.perf_counter() - started) / len(loaded)
    return host.with_local([_report(item, seconds) for item in loaded], loaded)


def _report(item: Contribution[InterceptorSpec], seconds: float) -> LoadReport:
    return LoadReport(
        name=item.plugin,
        distribution="(extensions config)",
        version="",
        entry_point=item.plugin.removeprefix("local:"),
        state=PluginState.LOADED,
        hooks=(HOOK.name,),
        contributions=(ContributionInfo(HOOK.name, item.spec.name, item.spec.precedence, item.spec.section),),
        seconds=seconds,
        requested=True,
    )


def _spec(worker: Worker, path: str, place: int, timeout_seconds: float) -> InterceptorSpec:
    where = f"mcpInterceptors[{place}] {path!r}"
    module, colon, attribute = path.strip().partition(":")
    if not module or not colon or not attribute:
        raise ConfigError("must be module:builder", where=where)
    try:
        found = worker.run(lambda: import_object(module, attribute), timeout_seconds=timeout_seconds)
    except GivenUp:
        raise ConfigError(f"importing it took more than {timeout_seconds:g} seconds", where=where) from None
    except BaseException as error:
        if _is_signal(error):
            raise
        raise ConfigError(f"cannot be loaded: {describe(error)}", where=where) from error
    spec = found if isinstance(found, InterceptorSpec) else _from_builder(found, path, where)
    if fault := fault_of(HOOK, spec):
        raise ConfigError(fault, where=where)
    return spec


def _is_signal(error: BaseException) -> bool:
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code is import_object.__code__:
            return False
        traceback = traceback.tb_next
    return True


def _from_builder(builder: Any, path: str, where: str) -> InterceptorSpec:
    if not callable(builder):
        raise ConfigError(f"names a {type(builder).__name__}, and a builder is called", where=where)
    if inspect.iscoroutinefunction(builder):
        raise ConfigError(
            "names a coroutine function: is it the interceptor itself? Name a function that returns it",
            where=where,
        )
    return InterceptorSpec(
        name=path,
        precedence=getattr(builder, "precedence", PRECEDENCE_LOCAL),
        build=_guarded(builder, where),
    )


def _guarded(builder: Callable[..., Any], where: str) -> "Callable[[GatewayContext], Interceptor]":
    def build(context: "GatewayContext") -> Interceptor:
        try:
            takes_context = bool(inspect.signature(builder).parameters)
        except (TypeError, ValueError):
            takes_context = True
        try:
            built = builder(context) if takes_context else builder()
        except Exception as error:
            raise ConfigError(f"its builder raised {describe(error)}", where=where) from error
        if not callable(built):
            kind = "None" if built is None else f"a {type(built).__name__}"
            raise ConfigError(f"its builder returned {kind} instead of an interceptor", where=where)
        return built  # type: ignore[no-any-return]

    return build
