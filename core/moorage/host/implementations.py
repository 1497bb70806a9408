"""Which hooks a plugin object implements, and whether it may (PLUG-2, PLUG-4).

pluggy accepts what the host has to refuse: wrappers, parameters that never get a value, hooks that nobody
has specified, and functions that return a coroutine.
"""

import difflib
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pluggy

from moorage.contract import API_VERSION, PROJECT
from moorage.host.hooks import HOOKS, Hook, fault_of

MAX_CONTRIBUTIONS = 10_000


class BadPlugin(Exception):
    """The plugin is wrong in itself; the text says what to mend."""


@dataclass(frozen=True, slots=True)
class Implementation:
    """A hook that a plugin implements, checked but not yet called."""

    hook: Hook
    function: Callable[[], Any]


def implementations(plugin: object, manager: pluggy.PluginManager) -> tuple[Implementation, ...]:
    """The plugin's hooks by name; raises `BadPlugin` for anything that the host would have to ignore."""
    _refuse_what_is_no_plugin(plugin)
    found: list[Implementation] = []
    faults: list[str] = []
    for name in sorted(set(_names(plugin))):
        options = manager.parse_hookimpl_opts(plugin, name)
        if options is None:
            continue
        hook_name = options["specname"] or name
        function = getattr(plugin, name)
        hook = HOOKS.get(hook_name)
        if hook is None:
            if not options["optionalhook"]:
                faults.append(_unknown(hook_name))
        elif fault := _option_fault(options) or _signature_fault(function):
            faults.append(f"{hook_name} {fault}")
        else:
            found.append(Implementation(hook, function))
    if faults:
        raise BadPlugin("; ".join(faults))
    if not found:
        raise BadPlugin(_no_hook(plugin))
    return tuple(sorted(found, key=lambda implementation: implementation.hook.name))


def contributions(implementation: Implementation) -> tuple[Any, ...]:
    """Call the hook; raises what it raises, and `BadPlugin` where it returns what it should not."""
    hook = implementation.hook
    answer = implementation.function()
    if inspect.iscoroutine(answer):
        answer.close()
        raise BadPlugin(f"{hook.name} returns a coroutine, and hooks are synchronous")
    wanted = f"an iterable of {hook.spec.__name__}"
    if isinstance(answer, hook.spec):
        raise BadPlugin(f"{hook.name} returns one {hook.spec.__name__} instead of {wanted}")
    if isinstance(answer, str | bytes | dict) or not hasattr(type(answer), "__iter__"):
        raise BadPlugin(f"{hook.name} returns {_kind(answer)} instead of {wanted}")
    specs = tuple(islice(iter(answer), MAX_CONTRIBUTIONS + 1))
    if len(specs) > MAX_CONTRIBUTIONS:
        raise BadPlugin(f"{hook.name} yields more than {MAX_CONTRIBUTIONS:,} contributions")
    for spec in specs:
        if fault := fault_of(hook, spec):
            raise BadPlugin(f"{hook.name} contributes {fault}")
    return specs


def _refuse_what_is_no_plugin(plugin: object) -> None:
    if inspect.ismodule(plugin):
        return
    if isinstance(plugin, type):
        raise BadPlugin(f"the entry point names the class {plugin.__name__}: name a module or an instance")
    if inspect.isroutine(plugin):
        raise BadPlugin("the entry point names a function: name the module that holds it")
    if plugin is None or isinstance(plugin, str | bytes | int | float | complex | list | tuple | dict | set):
        raise BadPlugin(f"the entry point names {_kind(plugin)}: name a module or an object with hooks")


def _names(plugin: object) -> Iterator[str]:
    return (name for name in dir(plugin) if not name.startswith("__"))


def _option_fault(options: Any) -> str | None:
    if options["wrapper"] or options["hookwrapper"]:
        return "is a wrapper, and hooks cannot be wrapped"
    if options["tryfirst"] or options["trylast"]:
        return "asks to be tried first or last: order comes from a contribution's precedence alone"
    return None


def _signature_fault(function: Callable[..., Any]) -> str | None:
    plain = inspect.unwrap(getattr(function, "__func__", function))
    if inspect.iscoroutinefunction(plain):
        return "is a coroutine function, and hooks are synchronous: contribute an object that is not"
    if inspect.isgeneratorfunction(plain) or inspect.isasyncgenfunction(plain):
        return "is a generator function: return a tuple or a list"
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return "has no readable signature"
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            return f"takes *{parameter.name}, and hooks take no arguments"
        if parameter.kind is parameter.VAR_KEYWORD:
            return f"takes **{parameter.name}, and hooks take no arguments"
        if parameter.kind is parameter.KEYWORD_ONLY or parameter.default is not parameter.empty:
            return f"has a parameter {parameter.name!r} that would never get a value"
        return (
            f"has a parameter {parameter.name!r}, which plugin API {API_VERSION} does not pass: "
            "hooks take no arguments"
        )
    return None


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name, HOOKS, n=1, cutoff=0.6)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"{name} is no hook of plugin API {API_VERSION}{hint}"


def _no_hook(plugin: object) -> str:
    bare = sorted(set(_names(plugin)) & set(HOOKS))
    if bare:
        return f"{', '.join(bare)} lacks the @hookimpl of moorage.contract"
    return f"it implements no hook of the project {PROJECT!r} (with @hookimpl of moorage.contract)"


def _kind(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
