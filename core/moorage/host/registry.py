"""`PluginHost`: what all loaded plugins contribute, typed and in order (PLUG-2, PLUG-3)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from moorage.accounts import Account, Failure
from moorage.contract import (
    AssistantSpec,
    AuthenticatorSpec,
    CliGroup,
    ConfigSection,
    InterceptorSpec,
    LauncherGrammar,
    LaunchValidatorSpec,
    LifecycleSpec,
    MoorageError,
    RoutingHintSpec,
    RunValidatorSpec,
    SinkSpec,
    StoreSpec,
    TaskDriverSpec,
    ToolSourceSpec,
)
from moorage.host.hooks import HOOKS, Hook
from moorage.host.reports import ContributionInfo, LoadReport, PluginState, bounded

T_co = TypeVar("T_co", covariant=True)

MAX_FAILURE_CHARACTERS = 500
MAX_LISTED = 20


class PluginLoadFailed(MoorageError):
    """The gateway must not start without these plugins (PLUG-4, PLUG-9). ``reports`` says which and why."""

    def __init__(self, reports: Sequence[LoadReport], *, why: str) -> None:
        shown = [f"{r.name} ({r.source}): {r.state}: {r.error}" for r in reports[:MAX_LISTED]]
        if len(reports) > MAX_LISTED:
            shown.append(f"and {len(reports) - MAX_LISTED} more")
        super().__init__(f"{why}: " + "; ".join(shown))
        self.reports = tuple(reports)


@dataclass(frozen=True, slots=True)
class Contribution(Generic[T_co]):
    """One object that a plugin contributes. ``plugin`` names it in errors."""

    spec: T_co
    plugin: str


class PluginHost:
    """All that plugins contribute, and a report for every candidate.

    The order of each tuple is by precedence where the contribution has one, then by plugin, then by name:
    never by installation (PLUG-3). It does not change after the start.
    """

    def __init__(
        self, reports: Iterable[LoadReport], contributions: Iterable[tuple[Hook, Contribution[Any]]]
    ) -> None:
        held = list(contributions)
        self._reports = _sorted(reports)
        self._contributions = {name: _ordered(name, held) for name in HOOKS}
        self._accounts: dict[str, Account] = {}
        self._redact: Callable[[str], str] = str

    @property
    def reports(self) -> tuple[LoadReport, ...]:
        """Every candidate, by name."""
        return self._reports

    def report(self, name: str) -> LoadReport | None:
        """The report of the plugin of this name: the loaded one, where several candidates bear it."""
        same = [r for r in self._reports if r.name == name]
        return next((r for r in same if r.loaded), same[0] if same else None)

    def summary(self) -> str:
        """The one line that the start logs (PLUG-4)."""
        loaded = [r.name for r in self._reports if r.loaded]
        return self.counted() + (f": {', '.join(loaded)}" if loaded else "")

    def counted(self) -> str:
        """The same without the names."""
        return f"loaded {sum(r.loaded for r in self._reports)} of {len(self._reports)} plugins"

    def ensure_startable(self, *, strict: bool) -> None:
        """Raises `PluginLoadFailed` where the start must fail: in strict mode for every candidate that is
        neither loaded nor blocked, else for those that were asked for (PLUG-9)."""
        amiss = [r for r in self._reports if r.state in (PluginState.FAILED, PluginState.REFUSED)]
        asked = [r for r in amiss if r.requested]
        if strict and amiss:
            raise PluginLoadFailed(amiss, why="plugins.strict is set, and these plugins are not loaded")
        if asked:
            raise PluginLoadFailed(asked, why="these plugins were asked for and cannot be loaded")

    def use_redactor(self, redact: Callable[[str], str]) -> None:
        """From now on failures are recorded redacted (CRED-9)."""
        self._redact = redact

    def record_failure(self, plugin: str, text: str) -> None:
        """Keep what a plugin's object did wrong, each fault once."""
        self.account(plugin).failed(text)

    def account(self, plugin: str) -> Account:
        """Where the faults of a plugin's objects and the time spent in them are written down."""
        # One step, since the watchdog's thread asks, too.
        return self._accounts.setdefault(plugin, Account(plugin, self._clean))

    def _clean(self, text: str) -> str:
        return bounded(self._redact(text), MAX_FAILURE_CHARACTERS)

    def failures(self, plugin: str) -> tuple[Failure, ...]:
        """The last faults of a plugin, each once, the one seen last at the end."""
        return self.account(plugin).failures

    def as_dicts(self) -> list[Mapping[str, Any]]:
        """All reports with order, failures and time, JSON-compatible and redacted (``GET /api/plugins``)."""
        return [self._as_dict(report) for report in self._reports]

    def _as_dict(self, report: LoadReport) -> Mapping[str, Any]:
        # Several candidates may bear one name; only the one that is loaded has objects that can fail.
        account = self.account(report.name) if report.loaded else Account()
        plain = report.as_dict()
        return {
            **plain,
            "error": self._redact(report.error) if report.error else None,
            "contributions": [
                {**one, "order": self.order(report, info)}
                for one, info in zip(plain["contributions"], report.contributions, strict=True)
            ],
            "failures": [
                {"at": f.at.isoformat(), "first_at": f.first_at.isoformat(), "count": f.count, "text": f.text}
                for f in account.failures
            ],
            "calls": account.calls,
            "seconds_in_calls": round(account.seconds, 6),
        }

    def order(self, report: LoadReport, info: ContributionInfo) -> str | None:
        """Where a contribution stands among those of its hook, and why; None where order means nothing."""
        if info.precedence is None:
            return None
        # From the reports, so that local code counts, too, which others loaded (PLUG-9).
        held = [(r, c) for r in self._reports if r.loaded for c in r.contributions if c.hook == info.hook]
        held.sort(key=lambda pair: (pair[1].precedence or 0, pair[0].name, pair[1].name))
        at = next((n for n, (r, c) in enumerate(held) if r is report and c is info), None)
        if at is None:
            return None
        before = f", after {held[at - 1][1].name!r} of plugin {held[at - 1][0].name!r}" if at else ""
        return f"{at + 1} of {len(held)} by precedence {info.precedence:,}{before}"

    def add_reports(self, reports: Iterable[LoadReport]) -> None:
        """Report local code that is no package and was loaded by others (PLUG-9)."""
        self._reports = _sorted([*self._reports, *reports])

    def stores(self) -> tuple[Contribution[StoreSpec], ...]:
        return self._contributions["moorage_stores"]

    def sections(self) -> tuple[Contribution[ConfigSection], ...]:
        return self._contributions["moorage_config_sections"]

    def interceptors(self) -> tuple[Contribution[InterceptorSpec], ...]:
        return self._contributions["moorage_credential_interceptors"]

    def tool_sources(self) -> tuple[Contribution[ToolSourceSpec], ...]:
        return self._contributions["moorage_tool_sources"]

    def drivers(self) -> tuple[Contribution[TaskDriverSpec], ...]:
        return self._contributions["moorage_task_drivers"]

    def routing_hints(self) -> tuple[Contribution[RoutingHintSpec], ...]:
        return self._contributions["moorage_routing_hints"]

    def launch_validators(self) -> tuple[Contribution[LaunchValidatorSpec], ...]:
        return self._contributions["moorage_launch_validators"]

    def grammars(self) -> tuple[Contribution[LauncherGrammar], ...]:
        return self._contributions["moorage_launcher_grammars"]

    def run_validators(self) -> tuple[Contribution[RunValidatorSpec], ...]:
        return self._contributions["moorage_run_validators"]

    def assistants(self) -> tuple[Contribution[AssistantSpec], ...]:
        return self._contributions["moorage_assistants"]

    def sinks(self) -> tuple[Contribution[SinkSpec], ...]:
        return self._contributions["moorage_notification_sinks"]

    def authenticators(self) -> tuple[Contribution[AuthenticatorSpec], ...]:
        return self._contributions["moorage_authenticators"]

    def cli_groups(self) -> tuple[Contribution[CliGroup], ...]:
        return self._contributions["moorage_cli_groups"]

    def lifecycles(self) -> tuple[Contribution[LifecycleSpec], ...]:
        return self._contributions["moorage_lifecycle"]


def _ordered(
    name: str, contributions: Iterable[tuple[Hook, Contribution[Any]]]
) -> tuple[Contribution[Any], ...]:
    mine = [(hook, contribution) for hook, contribution in contributions if hook.name == name]

    def key(pair: tuple[Hook, Contribution[Any]]) -> tuple[int, str, str]:
        hook, contribution = pair
        spec = contribution.spec
        return (getattr(spec, "precedence", 0), contribution.plugin, getattr(spec, hook.label))

    return tuple(contribution for _, contribution in sorted(mine, key=key))


def _sorted(reports: Iterable[LoadReport]) -> tuple[LoadReport, ...]:
    return tuple(sorted(reports, key=lambda r: (r.name, r.distribution, r.entry_point)))
