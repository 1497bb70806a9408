"""``moorage servers probe``: does every configured server start, and what does it offer (TOOL-2)."""

import argparse
import asyncio
from dataclasses import replace
from pathlib import Path

from moorage.cli.exits import OK, PROBLEM, UsageError
from moorage.cli.output import print_json, print_table
from moorage.cli.session import host as load_host
from moorage.cli.session import settings as load_settings


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    commands = parser.add_subparsers(metavar="COMMAND", title="commands", required=True)
    about = (
        "Start or reach the servers of the extensions config and list their tools, as a gateway here would; "
        "exit with 1 if one fails. Runs what the file names: it is the operator's own."
    )
    probe = commands.add_parser("probe", help=about, description=about, allow_abbrev=False)
    probe.add_argument("name", metavar="NAME", nargs="*", help="Only report on these servers.")
    probe.add_argument("--config", metavar="FILE", type=Path, help="Else the one in force here.")
    probe.add_argument("--json", action="store_true", help="Print JSON, for scripts.")


def run(options: argparse.Namespace) -> int:
    """Returns the exit status."""
    from moorage.gateway.partial import probe_servers

    settings = load_settings()
    if options.config is not None:
        settings = replace(settings, extensions_config=options.config)
    states = asyncio.run(probe_servers(settings, load_host()))
    unknown = set(options.name) - {state.name for state in states}
    if unknown:
        known = ", ".join(state.name for state in states) or "none is configured"
        raise UsageError(f"there is no server {sorted(unknown)[0]!r}; there are: {known}")
    shown = [state for state in states if not options.name or state.name in options.name]
    if options.json:
        print_json(
            [
                {
                    "name": state.name,
                    "transport": state.transport,
                    "enabled": state.enabled,
                    "state": state.state,
                    "tool_count": state.tool_count,
                    "error": state.error,
                    "warnings": list(state.warnings),
                }
                for state in shown
            ]
        )
    elif not shown:
        print("no servers are configured")
    else:
        print_table(
            ("server", "transport", "state", "tools", "what is wrong"),
            [
                (
                    state.name,
                    state.transport,
                    state.state,
                    str(state.tool_count) if state.state == "ready" else "-",
                    "; ".join(filter(None, (state.error, *state.warnings))),
                )
                for state in shown
            ],
            states=2,
        )
    wrong = [state for state in shown if state.enabled and state.state != "ready"]
    return PROBLEM if wrong else OK
