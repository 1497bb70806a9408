"""What the loaded plugins contribute, and what became of each candidate."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from moorage.contract.credentials import InterceptorSpec
from moorage.contract.hosting import AuthenticatorSpec, CliGroup, LifecycleSpec
from moorage.contract.launch import LauncherGrammar, LaunchValidatorSpec
from moorage.contract.routing import RoutingHintSpec
from moorage.contract.runs import AssistantSpec, RunValidatorSpec
from moorage.contract.sections import ConfigSection
from moorage.contract.sinks import SinkSpec
from moorage.contract.stores import StoreSpec
from moorage.contract.tasks import TaskDriverSpec
from moorage.contract.tools import ToolSourceSpec

T = TypeVar("T")
KEPT_FAILURES = 20


@dataclass(frozen=True, slots=True)
class Contribution(Generic[T]):
    """One contributed object and the plugin that it came from."""

    spec: T
    plugin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadReport:
    """What became of one candidate (PLUG-4)."""

    name: str
    distribution: str
    version: str
    entry_point: str
    state: Literal["loaded", "failed", "blocked", "refused"]
    error: str | None = None
    hooks: tuple[str, ...] = ()


@dataclass
class PluginHost:
    """The registry. Contributions come by precedence where they have one, then by plugin name."""

    reports: tuple[LoadReport, ...] = ()
    contributions: Mapping[str, Sequence[Contribution[Any]]] = field(default_factory=dict)
    failures: dict[str, deque[str]] = field(default_factory=dict)

    def record_failure(self, plugin: str, text: str) -> None:
        """Remember a failure at run time; the newest are kept. ``text`` must hold no secret."""
        self.failures.setdefault(plugin, deque(maxlen=KEPT_FAILURES)).append(text)

    def _of(self, hook: str) -> tuple[Contribution[Any], ...]:
        return tuple(
            sorted(
                self.contributions.get(hook, ()),
                key=lambda one: (getattr(one.spec, "precedence", 0), one.plugin),
            )
        )

    def stores(self) -> tuple[Contribution[StoreSpec], ...]:
        return self._of("moorage_stores")

    def sections(self) -> tuple[Contribution[ConfigSection], ...]:
        return self._of("moorage_config_sections")

    def interceptors(self) -> tuple[Contribution[InterceptorSpec], ...]:
        return self._of("moorage_credential_interceptors")

    def tool_sources(self) -> tuple[Contribution[ToolSourceSpec], ...]:
        return self._of("moorage_tool_sources")

    def drivers(self) -> tuple[Contribution[TaskDriverSpec], ...]:
        return self._of("moorage_task_drivers")

    def routing_hints(self) -> tuple[Contribution[RoutingHintSpec], ...]:
        return self._of("moorage_routing_hints")

    def launch_validators(self) -> tuple[Contribution[LaunchValidatorSpec], ...]:
        return self._of("moorage_launch_validators")

    def grammars(self) -> tuple[Contribution[LauncherGrammar], ...]:
        return self._of("moorage_launcher_grammars")

    def run_validators(self) -> tuple[Contribution[RunValidatorSpec], ...]:
        return self._of("moorage_run_validators")

    def assistants(self) -> tuple[Contribution[AssistantSpec], ...]:
        return self._of("moorage_assistants")

    def sinks(self) -> tuple[Contribution[SinkSpec], ...]:
        return self._of("moorage_notification_sinks")

    def authenticators(self) -> tuple[Contribution[AuthenticatorSpec], ...]:
        return self._of("moorage_authenticators")

    def cli_groups(self) -> tuple[Contribution[CliGroup], ...]:
        return self._of("moorage_cli_groups")

    def lifecycles(self) -> tuple[Contribution[LifecycleSpec], ...]:
        return self._of("moorage_lifecycle")
