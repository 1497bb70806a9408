"""A config administration on a file of its own, with launch validators made of functions."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from moorage.config import ConfigEditor, ExtensionsFile
from moorage.contract import LaunchRequest, LaunchValidator
from moorage.gateway.administration import ConfigAdministration
from moorage.gateway.building import Built
from moorage.gateway.frozen import FrozenExtensions
from moorage.gateway.launches import LaunchJudges
from support.extensions import SECTIONS


class Rules:
    """A `LaunchValidator` that is one function."""

    def __init__(self, rule: Callable[[LaunchRequest], Any]) -> None:
        self.rule = rule

    def validate(self, request: LaunchRequest) -> None:
        self.rule(request)


def administration(
    file: Path,
    tools: Any,
    host: Any,
    *rules: Callable[[LaunchRequest], Any],
    task_sections: frozenset[str] = frozenset(),
) -> ConfigAdministration:
    """Composed as the gateway composes it."""
    source = ExtensionsFile(explicit=file, env={}, cwd=file.parent, sections=SECTIONS)
    judges: list[Built[LaunchValidator]] = [
        Built(f"rules-{number}", "rules-plugin", Rules(rule)) for number, rule in enumerate(rules)
    ]
    return ConfigAdministration(
        ConfigEditor(source, lock_timeout_seconds=5),
        FrozenExtensions(source, task_sections),
        LaunchJudges(judges, host),
        tools,
    )
