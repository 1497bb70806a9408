"""Launch validators: what a server registered over HTTP may start (LAUNCH)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from moorage.contract.empty import empty
from moorage.contract.servers import Transport

if TYPE_CHECKING:
    from moorage.contract.gateway import GatewayContext


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """What a server would start, as written by the client: placeholders are not resolved."""

    server: str
    transport: Transport
    command: str | None = None
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=empty, repr=False)
    cwd: str | None = None
    url: str | None = field(default=None, repr=False)


class LaunchValidator(Protocol):
    """Judges a launch. Pure: the same request gets the same verdict."""

    def validate(self, request: LaunchRequest) -> None:
        """Raises `LaunchRefused`, naming server and flag or variable, never a value (LAUNCH-3)."""
        ...


@dataclass(frozen=True, slots=True)
class LaunchValidatorSpec:
    """Contributes a launch validator."""

    name: str
    build: "Callable[[GatewayContext], LaunchValidator]"


@dataclass(frozen=True, slots=True)
class LauncherGrammar:
    """Option arity, exec flags and the end of the option region of one launcher (LAUNCH-4, LAUNCH-5).

    ``boolean_options`` and ``value_options`` are spelled with their dashes. ``unknown_takes_value`` says
    what an option in neither set consumes. ``exec_options`` run code. ``path_options`` name something on
    the gateway's disk (LAUNCH-9).
    """

    command: str
    boolean_options: frozenset[str]
    value_options: frozenset[str]
    exec_options: frozenset[str]
    path_options: frozenset[str] = frozenset()
    unknown_takes_value: bool = True
    ends_at_first_operand: bool = True
    single_dash_long: bool = False
    """``-call`` means ``--call`` (npm)."""
    source_version: str = ""


class LauncherGrammars(Protocol):
    """All grammars that plugins contributed; a service of the gateway for its launch validators."""

    def grammars(self) -> Mapping[str, LauncherGrammar]:
        """By command."""
        ...
