"""Every hook. Hooks are synchronous and contribute objects once, at start (PLUG-2).

An implementation takes no argument and returns an iterable of contributions (an empty one is fine). It
does no I/O and imports little: what costs time belongs in a contribution's ``build``, ``open`` or
``load``. A wrapper, a coroutine, a generator function, a default or an unknown parameter is refused.
"""

from collections.abc import Iterable

from moorage.contract.credentials import InterceptorSpec
from moorage.contract.hosting import AuthenticatorSpec, CliGroup, LifecycleSpec
from moorage.contract.launch import LauncherGrammar, LaunchValidatorSpec
from moorage.contract.markers import hookspec
from moorage.contract.routing import RoutingHintSpec
from moorage.contract.runs import AssistantSpec, RunValidatorSpec
from moorage.contract.sections import ConfigSection
from moorage.contract.sinks import SinkSpec
from moorage.contract.stores import StoreSpec
from moorage.contract.tasks import TaskDriverSpec
from moorage.contract.tools import ToolSourceSpec


@hookspec
def moorage_stores() -> Iterable[StoreSpec]:
    """Durable stores, by database URL scheme. Two stores of one name or scheme are both refused."""
    return ()


@hookspec
def moorage_config_sections() -> Iterable[ConfigSection]:
    """The parts of a server's config that this plugin owns (PLUG-5)."""
    return ()


@hookspec
def moorage_credential_interceptors() -> Iterable[InterceptorSpec]:
    """Interceptors around every call to a server, by precedence (CRED-1)."""
    return ()


@hookspec
def moorage_tool_sources() -> Iterable[ToolSourceSpec]:
    """Where agents' tools come from (TOOL)."""
    return ()


@hookspec
def moorage_task_drivers() -> Iterable[TaskDriverSpec]:
    """Drivers of long-running remote work (TASK-1). Two drivers of one name are both refused."""
    return ()


@hookspec
def moorage_routing_hints() -> Iterable[RoutingHintSpec]:
    """Soft hints on which tool to prefer (ROUTE)."""
    return ()


@hookspec
def moorage_launch_validators() -> Iterable[LaunchValidatorSpec]:
    """Judges of what a server registered over HTTP may start (LAUNCH)."""
    return ()


@hookspec
def moorage_launcher_grammars() -> Iterable[LauncherGrammar]:
    """Grammars of package launchers, for the launch validators (LAUNCH-5)."""
    return ()


@hookspec
def moorage_run_validators() -> Iterable[RunValidatorSpec]:
    """Run admission, after the core's own rules (RUN-3)."""
    return ()


@hookspec
def moorage_assistants() -> Iterable[AssistantSpec]:
    """Assistants that answer runs (RUN-6). Two assistants of one name are both refused."""
    return ()


@hookspec
def moorage_notification_sinks() -> Iterable[SinkSpec]:
    """Where attention events of tasks go (NOTE-4)."""
    return ()


@hookspec
def moorage_authenticators() -> Iterable[AuthenticatorSpec]:
    """Further ways to authenticate a request, beside API keys (API-2)."""
    return ()


@hookspec
def moorage_cli_groups() -> Iterable[CliGroup]:
    """Command groups; announce their names as entry points in ``moorage.cli`` too, for ``--help``."""
    return ()


@hookspec
def moorage_lifecycle() -> Iterable[LifecycleSpec]:
    """Async context managers around the gateway's life."""
    return ()
