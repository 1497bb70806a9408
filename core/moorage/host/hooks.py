"""What each hook contributes, and what a contribution must look like (PLUG-2, PLUG-3)."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from moorage.contract import (
    AssistantSpec,
    AuthenticatorSpec,
    CliGroup,
    ConfigSection,
    InterceptorSpec,
    LauncherGrammar,
    LaunchValidatorSpec,
    LifecycleSpec,
    RoutingHintSpec,
    RunValidatorSpec,
    SinkSpec,
    StoreSpec,
    TaskDriverSpec,
    ToolSourceSpec,
)

MAX_PRECEDENCE = 1_000_000
MAX_NAME_CHARACTERS = 128
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*")
_COMMAND = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class Hook:
    """One hook of the contract as the host treats it.

    ``kind`` is the word for a contribution in messages. ``unique`` yields what only one plugin may claim,
    each with the words that say so in a message. ``calls`` are the fields that must be callable.
    """

    name: str
    kind: str
    spec: type[Any]
    calls: tuple[str, ...] = ("build",)
    optional_calls: tuple[str, ...] = ()
    label: str = "name"
    unique: Callable[[Any], tuple[tuple[str, str], ...]] = lambda spec: ()
    check: Callable[[Any], str | None] = lambda spec: None


def _by_name(kind: str) -> Callable[[Any], tuple[tuple[str, str], ...]]:
    return lambda spec: ((kind, spec.name),)


def _store_claims(spec: StoreSpec) -> tuple[tuple[str, str], ...]:
    return (("store", spec.name), *(("store scheme", scheme) for scheme in sorted(spec.schemes)))


def _check_store(spec: StoreSpec) -> str | None:
    if not isinstance(spec.schemes, frozenset) or not spec.schemes:
        return "its schemes are no frozenset of names"
    wrong = [s for s in spec.schemes if not isinstance(s, str) or not _SCHEME.fullmatch(s)]
    return f"{wrong[0]!r} is no URL scheme" if wrong else None


def _check_section(spec: ConfigSection) -> str | None:
    if not isinstance(spec.levels, frozenset) or not spec.levels or spec.levels - {"server", "tool"}:
        return "its levels must be 'server', 'tool' or both"
    for name in ("secret_paths", "destination_paths", "presentation_paths"):
        paths = getattr(spec, name)
        # A plain text would be taken letter by letter, and mask nothing.
        if not isinstance(paths, tuple) or not all(isinstance(p, str) and p for p in paths):
            return f"its {name} must be a tuple of dotted paths"
    return None


def _check_interceptor(spec: InterceptorSpec) -> str | None:
    return None if isinstance(spec.phases, frozenset) else "its phases are no frozenset"


def _check_group(spec: CliGroup) -> str | None:
    if not _COMMAND.fullmatch(spec.name):
        return "a command's name is of lower-case letters, digits and single hyphens"
    return None


HOOKS: Mapping[str, Hook] = {
    hook.name: hook
    for hook in (
        Hook(
            "moorage_stores",
            "store",
            StoreSpec,
            ("open", "upgrade"),
            unique=_store_claims,
            check=_check_store,
        ),
        Hook(
            "moorage_config_sections",
            "config section",
            ConfigSection,
            ("load_model",),
            ("mask", "merge", "check"),
            unique=_by_name("config section"),
            check=_check_section,
        ),
        Hook(
            "moorage_credential_interceptors",
            "interceptor",
            InterceptorSpec,
            unique=_by_name("interceptor"),
            check=_check_interceptor,
        ),
        Hook("moorage_tool_sources", "tool source", ToolSourceSpec),
        Hook("moorage_task_drivers", "task driver", TaskDriverSpec, unique=_by_name("task driver")),
        Hook("moorage_routing_hints", "routing hint", RoutingHintSpec),
        Hook("moorage_launch_validators", "launch validator", LaunchValidatorSpec),
        Hook(
            "moorage_launcher_grammars",
            "launcher grammar",
            LauncherGrammar,
            (),
            label="command",
            unique=lambda spec: (("launcher grammar", spec.command),),
        ),
        Hook("moorage_run_validators", "run validator", RunValidatorSpec),
        Hook(
            "moorage_assistants",
            "assistant",
            AssistantSpec,
            ("build",),
            ("available",),
            unique=_by_name("assistant"),
        ),
        Hook(
            "moorage_notification_sinks",
            "notification sink",
            SinkSpec,
            unique=_by_name("notification sink"),
        ),
        Hook("moorage_authenticators", "authenticator", AuthenticatorSpec),
        Hook(
            "moorage_cli_groups",
            "command",
            CliGroup,
            ("load",),
            unique=_by_name("command"),
            check=_check_group,
        ),
        Hook("moorage_lifecycle", "life-cycle", LifecycleSpec, ("open",)),
    )
}


def fault_of(hook: Hook, spec: object) -> str | None:
    """What is wrong with a contribution, as the end of a sentence that names it; None where all is well."""
    if isinstance(spec, type):
        return f"the class {spec.__name__} instead of an instance of {hook.spec.__name__}"
    if not isinstance(spec, hook.spec):
        return f"{_kind(spec)} instead of {hook.spec.__name__}"
    name = getattr(spec, hook.label)
    if not isinstance(name, str) or not name.strip() or name != name.strip() or not name.isprintable():
        return f"a {hook.kind} whose {hook.label} is no plain, non-blank text"
    if len(name) > MAX_NAME_CHARACTERS:
        return f"a {hook.kind} whose {hook.label} has more than {MAX_NAME_CHARACTERS} characters"
    wrong = _field_fault(hook, spec) or hook.check(spec)
    return f"{hook.kind} {name!r}: {wrong}" if wrong else None


def _field_fault(hook: Hook, spec: Any) -> str | None:
    for field in hook.calls:
        if not callable(getattr(spec, field)):
            return f"its {field} cannot be called"
    for field in hook.optional_calls:
        value = getattr(spec, field)
        if value is not None and not callable(value):
            return f"its {field} cannot be called"
    precedence = getattr(spec, "precedence", 0)
    # A NaN or a text would make the order of all of them undefined, and an unbounded value leaves no room.
    if isinstance(precedence, bool) or not isinstance(precedence, int):
        return "its precedence is no whole number"
    if abs(precedence) > MAX_PRECEDENCE:
        return f"its precedence is not within {-MAX_PRECEDENCE:,} to {MAX_PRECEDENCE:,}"
    for field in ("timeout_seconds", "state_timeout_seconds"):
        seconds = getattr(spec, field, 1.0)
        if isinstance(seconds, bool) or not isinstance(seconds, int | float):
            return f"its {field} is no number"
        if not math.isfinite(seconds) or seconds <= 0:
            return f"its {field} must be finite and positive"
    section = getattr(spec, "section", None)
    if section is not None and (not isinstance(section, str) or not section.strip()):
        return "its section is no name"
    return None


def _kind(value: object) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"
