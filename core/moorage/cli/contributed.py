"""Runs a command that a plugin contributes, or says what brings it (PLUG-1)."""

import difflib
from collections.abc import Sequence
from typing import Any

from moorage.cli.announced import announced_commands
from moorage.cli.exits import OK, MissingCommand, UsageError
from moorage.cli.session import host as load_host
from moorage.contract import PluginError
from moorage.host import PluginHost, why_missing


def run_contributed(name: str, arguments: Sequence[str]) -> int:
    """Run it; returns its exit status.

    Raises `MissingCommand`, `UsageError` for a name that nobody knows, `PluginError` where it cannot be
    loaded, and whatever the command raises.
    """
    host = load_host()
    for contribution in host.cli_groups():
        if contribution.spec.name == name:
            return _run(_loaded(contribution.spec.load, name, contribution.plugin), name, arguments)
    raise _absent(host, name)


def _loaded(load: Any, name: str, plugin: str) -> Any:
    try:
        group = load()
    except Exception as error:
        kind = type(error).__name__
        raise PluginError(f"its command {name!r} cannot be loaded: {kind}: {error}", plugin=plugin) from error
    if type(group).__module__.partition(".")[0] == "typer" and hasattr(group, "registered_commands"):
        import typer.main

        group = typer.main.get_command(group)
    # By shape, not by class: typer brings a copy of click of its own, and a plugin may bring click itself.
    if not callable(getattr(group, "main", None)):
        raise PluginError(
            f"its command {name!r} is a {type(group).__name__} and no typer.Typer or click.Command",
            plugin=plugin,
        )
    return group


def _run(command: Any, name: str, arguments: Sequence[str]) -> int:
    try:
        command.main(args=list(arguments), prog_name=f"moorage {name}")
    except SystemExit as exit_:
        if exit_.code is None or isinstance(exit_.code, int):
            return exit_.code or OK
        raise
    return OK


def _absent(host: PluginHost, name: str) -> Exception:
    reason = why_missing(host, name, "commands")
    if reason:
        return MissingCommand(f"there is no command {name!r}: {reason}")
    distribution = announced_commands().get(name)
    if distribution:
        amiss = [r for r in host.reports if r.distribution == distribution and not r.loaded]
        reasons = "; ".join(f"plugin {r.name!r} is {r.state}: {r.error}" for r in amiss)
        reasons = reasons or "none of its plugins contributes it"
        return MissingCommand(f"{distribution} announces the command {name!r}, but {reasons}")
    from moorage.cli.front import CORE_COMMANDS

    known = [*CORE_COMMANDS, *(c.spec.name for c in host.cli_groups())]
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else "moorage --help lists what there is"
    return UsageError(f"there is no command {name!r}; {hint}")
