"""``moorage config check`` (CONF-7)."""

import argparse
from pathlib import Path

from moorage.cli.exits import OK, PROBLEM
from moorage.cli.output import print_json
from moorage.cli.session import host as load_host
from moorage.cli.session import settings as load_settings


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    commands = parser.add_subparsers(metavar="COMMAND", title="commands", required=True)
    about = "Say everything that is wrong in an extensions config; exit with 1 if a server would not load."
    check = commands.add_parser("check", help=about, description=about, allow_abbrev=False)
    check.add_argument("file", metavar="FILE", nargs="?", type=Path, help="Else the one in force here.")
    check.add_argument(
        "--http", action="store_true", help="Also say what the API would refuse to start (launch validators)."
    )
    check.add_argument("--json", action="store_true", help="Print JSON, for scripts.")
    check.set_defaults(act=_check)


def run(options: argparse.Namespace) -> int:
    """Returns the exit status."""
    return int(options.act(options))


def _check(options: argparse.Namespace) -> int:
    from moorage.config import check_file

    path = options.file or load_settings().extensions_config
    faults = check_file(path, load_host())
    if options.http:
        from moorage.gateway.launches import launch_faults

        faults += launch_faults(path, load_settings(), load_host())
    fatal = [fault for fault in faults if fault.fatal]
    if options.json:
        shown = [
            {"where": f.where, "server": f.server, "message": f.message, "fatal": f.fatal} for f in faults
        ]
        print_json({"ok": not fatal, "faults": shown})
    else:
        for fault in faults:
            print(f"{'error' if fault.fatal else 'warning'}: {fault.where}: {fault.message}")
        print(f"{len(fatal)} errors, {len(faults) - len(fatal)} warnings" if faults else "nothing is wrong")
    return PROBLEM if fatal else OK
