"""The parts of a gateway that are built from contributions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from moorage.calls.chain import BuiltInterceptor, InterceptorChain, refusing
from moorage.calls.local import load_local_interceptors
from moorage.contract import (
    Assistant,
    AssistantSpec,
    LauncherGrammar,
    PluginError,
    ServerClaim,
    ServerConfig,
    TaskBinding,
    TaskDriver,
)
from moorage.gateway.building import Builder, Built
from moorage.host import ContributionInfo, LoadReport, PluginState
from moorage.process_exit import EXITS
from moorage.runs.admission import NamedValidator
from moorage.runs.directory import NamedAssistant
from moorage.tasks.drivers import NamedDriver

INTERCEPTOR_HOOK = "moorage_credential_interceptors"


@dataclass(frozen=True, slots=True)
class Drivers:
    """The installed task drivers (`TaskDriverRegistry`)."""

    named: Mapping[str, NamedDriver]

    def drivers(self) -> Mapping[str, TaskDriver]:
        """Driver name → driver."""
        return {name: one.driver for name, one in self.named.items()}

    def claim(self, driver: str, server: ServerConfig, tool_names: Sequence[str]) -> ServerClaim:
        """See `TaskDriverRegistry`."""
        named = self.named[driver]
        try:
            with named.account.call():
                return _checked(named.driver.claim(server, tool_names))
        except EXITS:
            raise
        except BaseException as error:
            text = f"task driver {driver!r} failed to judge server {server.name!r}: {type(error).__name__}"
            named.account.told(text)
            raise PluginError(text, plugin=named.plugin) from error


def _checked(claim: object) -> ServerClaim:
    if not isinstance(claim, ServerClaim):
        raise TypeError(f"claim answered with {type(claim).__name__}, not a ServerClaim")
    if not all(isinstance(binding, TaskBinding) for binding in claim.submit.values()):
        raise TypeError("claim answered with a binding that is no TaskBinding")
    return ServerClaim(dict(claim.submit), frozenset(claim.hidden), tuple(claim.errors))


@dataclass(frozen=True, slots=True)
class Grammars:
    """The launcher grammars that plugins contributed (`LauncherGrammars`)."""

    by_command: Mapping[str, LauncherGrammar]

    @classmethod
    def of(cls, builder: Builder) -> "Grammars":
        return cls({one.spec.command: one.spec for one in builder.host.grammars()})

    def grammars(self) -> Mapping[str, LauncherGrammar]:
        """Command → grammar."""
        return self.by_command


def interceptor_chain(builder: Builder) -> InterceptorChain:
    """All interceptors, local ones included; one that could not be built refuses its calls, since a gap in
    the chain would send them without what it adds or checks (PLUG-9, CRED-1)."""
    contributed = builder.host.interceptors()
    host = builder.host
    built = {(one.plugin, one.name): one for one in builder.all(contributed)}
    local = load_local_interceptors(builder.context)
    builder.host.add_reports(map(_local_report, local))
    return InterceptorChain(
        [
            BuiltInterceptor(
                one.spec, built[one.plugin, one.spec.name].object, one.plugin, host.account(one.plugin)
            )
            if (one.plugin, one.spec.name) in built
            else refusing(one.spec, one.plugin)
            for one in contributed
        ]
        + [replace(one, account=host.account(one.plugin)) for one in local]
    )


def _local_report(one: BuiltInterceptor) -> LoadReport:
    return LoadReport(
        name=one.plugin,
        distribution="(mcpInterceptors)",
        version="",
        entry_point=one.plugin,
        state=PluginState.LOADED,
        hooks=(INTERCEPTOR_HOOK,),
        contributions=(
            ContributionInfo(INTERCEPTOR_HOOK, one.spec.name, one.spec.precedence, one.spec.section),
        ),
        requested=True,
    )


def task_drivers(builder: Builder) -> Drivers:
    """The drivers that could be built."""
    built = builder.all(builder.host.drivers())
    return Drivers({one.name: NamedDriver(one.name, one.plugin, one.object, one.account) for one in built})


def assistants(builder: Builder) -> dict[str, NamedAssistant]:
    """The assistants that could be built, each with why it cannot run here, if so."""
    specs = {one.spec.name: one.spec for one in builder.host.assistants()}
    named: dict[str, NamedAssistant] = {}
    for one in builder.all(builder.host.assistants()):
        spec = specs[one.name]
        unavailable = _unavailable(one, spec, builder)
        named[one.name] = NamedAssistant(
            one.name, spec.description, one.object, unavailable, one.account, spec.state_timeout_seconds
        )
    return named


def _unavailable(one: Built[Assistant], spec: AssistantSpec, builder: Builder) -> str | None:
    if spec.available is None:
        return None
    try:
        with one.account.call():
            answer: object = spec.available(builder.context)
        if answer is None or isinstance(answer, str):
            return answer
        raise TypeError(f"answered with {type(answer).__name__}, neither None nor a reason")
    except EXITS:
        raise
    except BaseException as error:
        reason = f"assistant {one.name!r} failed to say whether it is available: {type(error).__name__}"
        one.account.told(reason)
        return reason


def run_validators(builder: Builder) -> list[NamedValidator]:
    """All run validators by precedence. One that cannot be built fails the start: what it would have
    refused must not pass (RUN-3)."""
    contributions = builder.host.run_validators()
    built = builder.all(contributions, required=True)
    return [NamedValidator(one.name, one.plugin, one.object, one.account) for one in built]
