"""The command line; its groups are contributed by plugins (OPS-1)."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import click
import importlib_metadata

from moorage.contract.version import CLI_GROUP


class Commands(click.Group):
    """Core commands, and those that plugins contribute; only a command that runs is loaded (PLUG-8)."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        announced = {point.name for point in importlib_metadata.entry_points(group=CLI_GROUP)}
        return sorted(announced | set(super().list_commands(ctx)))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_text("  ".join(self.list_commands(ctx)))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return super().get_command(ctx, cmd_name) or _contributed(cmd_name)


def _host() -> Any:
    from moorage.host import load_plugins
    from moorage.settings_load import load_settings

    return load_plugins(load_settings(env=os.environ, cwd=Path.cwd()).plugins)


def _contributed(name: str) -> click.Command | None:
    for contribution in _host().cli_groups():
        if contribution.spec.name == name:
            loaded = contribution.spec.load()
            return loaded if isinstance(loaded, click.Command) else _foreign(name, loaded)
    if name in {"serve", "keys", "demo", "tasks", "db"}:
        wanted = "moorage-drivers" if name in ("tasks", "db") else "moorage-api"
        raise click.ClickException(f"{name!r} comes with {wanted}: pip install {wanted}")
    return None


def _foreign(name: str, application: Any) -> click.Command:
    """A typer application as one of our commands. Typer brings its own copy of click, whose exits ours does
    not know, so the application parses its arguments and ends the process by itself."""

    def run(arguments: tuple[str, ...]) -> None:
        application(args=list(arguments), prog_name=f"moorage {name}")

    return click.Command(
        name,
        callback=run,
        params=[click.Argument(["arguments"], nargs=-1, type=click.UNPROCESSED)],
        add_help_option=False,
        context_settings={"ignore_unknown_options": True},
    )


@click.group(cls=Commands)
def app() -> None:
    """Moorage: a plugin host for MCP gateways."""


@app.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
def plugins(as_json: bool) -> None:
    """List every plugin with its distribution, version, hooks and state."""
    import dataclasses

    reports = [dataclasses.asdict(report) for report in _host().reports]
    if as_json:
        click.echo(json.dumps(reports, indent=2))
        return
    for one in reports:
        click.echo(
            f"{one['name']:22} {one['distribution']:18} {one['version']:8} {one['state']:8} ", nl=False
        )
        click.echo(one["error"] or ", ".join(one["hooks"]))
    if not reports:
        click.echo("no plugins found: pip install moorage-drivers moorage-plugins moorage-api")


def main() -> None:
    """The console script; exit status 2 for wrong usage or settings."""
    from moorage.contract.errors import MoorageError

    try:
        app(prog_name="moorage")
    except MoorageError as error:
        click.echo(f"moorage: {error}", err=True)
        sys.exit(2)
