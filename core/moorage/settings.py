"""The gateway's own settings (CONF-6): ``moorage.toml`` and ``MOORAGE_*``, read at start only.

Dataclasses, since the command line reads them and pydantic alone costs more than it may take (PLUG-8).
`load_settings` reads them; nothing here does so by itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from moorage.contract.empty import empty


def _number(default: Any, *, low: float, high: float) -> Any:
    return field(default=default, metadata={"range": (low, high)})


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginSettings:
    """``[plugins]``. Further tables, ``[plugins.<name>]``, belong to the plugins (`options`)."""

    strict: bool = False
    """A plugin that cannot be loaded fails the start (PLUG-4)."""
    block: tuple[str, ...] = ()
    directory: Path | None = None
    """``MOORAGE_PLUGINS_DIR``: single-file plugins (PLUG-9)."""
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=empty, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSettings:
    """``[tasks]`` (TASK-25)."""

    enabled: bool | Literal["auto"] = "auto"
    poll_interval_seconds: float = _number(5.0, low=0.05, high=86_400)
    lease_seconds: float = _number(120.0, low=2, high=3_600)
    concurrency: int = _number(8, low=1, high=1_024)
    """Polls under way at once."""
    backoff_cap_seconds: float = _number(300.0, low=0.1, high=86_400)
    input_required_interval_seconds: float = _number(60.0, low=0.05, high=86_400)
    degraded_after_errors: int = _number(3, low=1, high=1_000)
    result_limit_bytes: int = _number(65_536, low=1_024, high=16_777_216)
    preview_characters: int = _number(2_000, low=1, high=65_536)
    retention_days: float | None = _number(None, low=0.001, high=36_500)
    """Finished tasks are deleted after this long; never, where it is not set."""
    sink: str = "thread"
    """The sink whose outcome decides a notification's status."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantSettings:
    """``[assistants]`` (RUN-6)."""

    model: str | None = None
    """A model as ``init_chat_model`` names it, for the default agent."""
    defer_tools_above: int = _number(64, low=0, high=1_000_000)
    """With more tools of servers than this, the agent has to look for them (ROUTE-4)."""
    promoted_by_keywords: int = _number(3, low=0, high=100)
    """So many deferred tools at most are shown for their keywords in a user's message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """``[runs]`` (RUN-1, RUN-5)."""

    lease_seconds: float = _number(20.0, low=2, high=3_600)
    """What a killed replica was running counts as gone after this."""

    @property
    def heartbeat_seconds(self) -> float:
        """How often a replica extends the leases of its runs, and learns what was ended elsewhere."""
        return self.lease_seconds / 10

    @property
    def take_over_seconds(self) -> float:
        """How often it looks for runs whose replica is gone."""
        return self.lease_seconds / 4


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitSettings:
    """``[limits]``: what clients may ask for at most (RUN-10)."""

    recursion_limit: int = _number(100, low=1, high=10_000)
    request_body_bytes: int = _number(4_194_304, low=1_024, high=268_435_456)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings of the core. ``other``: tables that other distributions own (``api``), unread."""

    home: Path
    database_url: str = field(repr=False)
    extensions_config: Path | None = None
    plugins: PluginSettings = field(default_factory=PluginSettings)
    tasks: TaskSettings = field(default_factory=TaskSettings)
    assistants: AssistantSettings = field(default_factory=AssistantSettings)
    runs: RunSettings = field(default_factory=RunSettings)
    limits: LimitSettings = field(default_factory=LimitSettings)
    other: Mapping[str, Mapping[str, Any]] = field(default_factory=empty, repr=False)
    source: Path | None = None
    """The ``moorage.toml`` that was read."""


def load_settings(
    *, env: Mapping[str, str], cwd: Path, home: Path | None = None, config: Path | None = None
) -> Settings:
    """The settings of a gateway that starts now: variables over the file, the file over the defaults.

    The file is ``config``, else what ``MOORAGE_CONFIG`` names, else ``moorage.toml`` in ``cwd``, else
    ``moorage.toml`` in the home; only the last two may be absent. ``home`` wins over ``MOORAGE_HOME``,
    which wins over ``home`` in the file; without any it is ``.moorage`` in ``cwd``. Relative paths count
    from ``cwd``, those in the file from the file's folder. A blank variable counts as unset.

    Raises `ConfigError` that names file and key (or the variable) and what is allowed there.
    """
    from moorage import settings_load

    return settings_load.load_settings(env=env, cwd=cwd, home=home, config=config)
