"""What is told of each plugin candidate (PLUG-4)."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

MAX_ERROR_CHARACTERS = 2_000


class PluginState(StrEnum):
    """What became of a candidate."""

    LOADED = "loaded"
    FAILED = "failed"
    """It could not be imported, or it is wrong in itself."""
    REFUSED = "refused"
    """It contradicts this version of the plugin API, another plugin, or the core."""
    BLOCKED = "blocked"
    """Settings block it; nothing of it was imported."""


@dataclass(frozen=True, slots=True)
class ContributionInfo:
    """One contribution as reports show it. ``precedence`` is None where order means nothing."""

    hook: str
    name: str
    precedence: int | None = None
    section: str | None = None
    """The server section that turns it on, where there is one."""


@dataclass(frozen=True, slots=True)
class LoadReport:
    """One candidate, loaded or not.

    ``entry_point`` is ``module`` or ``module:attribute``, or a file's path (PLUG-9). ``error`` says why it
    is not loaded and what to do; bounded. ``hooks`` are those that it implements, as far as it could be
    imported. ``seconds`` counts import and hooks. ``requested``: somebody asked for it by name or path, so
    that the gateway must not start without it.
    """

    name: str
    distribution: str
    version: str
    entry_point: str
    state: PluginState
    error: str | None = None
    hooks: tuple[str, ...] = ()
    contributions: tuple[ContributionInfo, ...] = ()
    api_range: str | None = None
    seconds: float = 0.0
    requested: bool = False

    @property
    def loaded(self) -> bool:
        return self.state is PluginState.LOADED

    @property
    def source(self) -> str:
        """``distribution version``, for messages."""
        return f"{self.distribution} {self.version}".strip()

    def as_dict(self) -> Mapping[str, Any]:
        """JSON-compatible, for ``--json`` and the API."""
        return {
            "name": self.name,
            "distribution": self.distribution,
            "version": self.version,
            "entry_point": self.entry_point,
            "state": self.state.value,
            "error": self.error,
            "hooks": list(self.hooks),
            "contributions": [
                {"hook": c.hook, "name": c.name, "precedence": c.precedence, "section": c.section}
                for c in self.contributions
            ],
            "api_range": self.api_range,
            "seconds": round(self.seconds, 6),
        }


def describe(error: BaseException) -> str:
    """An exception as ``Type: text (file:line)``, bounded; the exception's own methods may misbehave."""
    try:
        text = str(error).strip()
    except Exception:
        text = "its text cannot be shown"
    kind = type(error).__name__
    shown = f"{kind}: {text}" if text else kind
    return bounded(shown, MAX_ERROR_CHARACTERS - 200) + _place(error)


def bounded(text: str, limit: int = MAX_ERROR_CHARACTERS) -> str:
    """``text`` on one line, cut to ``limit`` characters. What it quotes may hold line breaks and terminal
    codes, which would forge lines of a log or a table."""
    text = "".join(character if character.isprintable() else " " for character in text)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _place(error: BaseException) -> str:
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None:
        return ""
    file = traceback.tb_frame.f_code.co_filename
    if file.startswith("<frozen importlib") or "importlib" in file.split("/")[-2:-1]:
        return ""  # the import system's own frames say nothing about the plugin
    return f" ({'/'.join(file.split('/')[-2:])}:{traceback.tb_lineno})"
