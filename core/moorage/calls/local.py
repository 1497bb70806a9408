"""Interceptors that the extensions config names: local code that is no package (PLUG-9)."""

import importlib
import inspect
import sys
from collections.abc import Iterator
from typing import Any

from moorage.calls.chain import BuiltInterceptor
from moorage.contract.credentials import PRECEDENCE_LOCAL, InterceptorSpec
from moorage.contract.errors import ConfigError
from moorage.contract.gateway import GatewayContext
from moorage.process_exit import is_exit


def load_local_interceptors(context: GatewayContext) -> list[BuiltInterceptor]:
    """Build what ``mcpInterceptors`` lists, each path ``module:builder`` once.

    A builder takes the `GatewayContext` or nothing, and returns an `Interceptor`, or an `InterceptorSpec`
    where it wants more than the defaults; an attribute ``precedence`` of the interceptor counts, too.
    Modules are also looked for beside the config file. Raises `ConfigError` for one that cannot be loaded:
    a gap in the chain would send calls without what it adds or checks.
    """
    snapshot = context.extensions.current()
    if snapshot.interceptors and snapshot.path is not None:
        folder = str(snapshot.path.parent)
        if folder not in sys.path:
            sys.path.append(folder)  # last, so that it shadows nothing that is installed
    where = f"{snapshot.path.name if snapshot.path else 'extensions config'}: mcpInterceptors"
    return [_built(path, context, where) for path in _once(snapshot.interceptors, where)]


def _once(paths: tuple[str, ...], where: str) -> Iterator[str]:
    seen: set[str] = set()
    for path in paths:
        if path in seen:
            raise ConfigError(f"{path!r} is listed twice", where=where)
        seen.add(path)
        yield path


def _built(path: str, context: GatewayContext, where: str) -> BuiltInterceptor:
    module, colon, name = path.partition(":")
    if not colon or not module.strip() or not name.strip():
        raise ConfigError(f"{path!r} is no path of the form module:builder", where=where)
    try:
        builder: Any = importlib.import_module(module.strip())
        for part in name.strip().split("."):
            builder = getattr(builder, part)
        made = builder(context) if _takes_one(builder) else builder()
        spec = made if isinstance(made, InterceptorSpec) else _default_spec(path, made)
        interceptor = spec.build(context)
    except BaseException as error:  # SystemExit of a module included
        if is_exit(error):
            raise
        raise ConfigError(
            f"{path!r} cannot be loaded, and the gateway does not start without it: "
            f"{type(error).__name__}: {error}",
            where=where,
        ) from error
    if not callable(interceptor):
        kind = type(interceptor).__name__
        raise ConfigError(f"{path!r} built a {kind}, which is no interceptor", where=where)
    return BuiltInterceptor(spec, interceptor, path)


def _default_spec(path: str, interceptor: Any) -> InterceptorSpec:
    precedence = getattr(interceptor, "precedence", PRECEDENCE_LOCAL)
    if isinstance(precedence, bool) or not isinstance(precedence, int):
        raise TypeError("the precedence of an interceptor is a whole number")
    return InterceptorSpec(path, precedence, lambda _: interceptor)


def _takes_one(builder: Any) -> bool:
    try:
        parameters = inspect.signature(builder).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(
        p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty for p in parameters
    )
