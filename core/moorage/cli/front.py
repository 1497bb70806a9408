"""The top of the command line: help without loading anything, then one command and nothing else (PLUG-8).

On argparse, which costs a fifth of what typer does; groups that plugins contribute are what their authors
made of typer or click (docs/decisions/0006-command-line.md).
"""

import argparse
import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from moorage import __version__
from moorage.cli.exits import DEBUG_VARIABLE, INTERRUPTED, OK, PROBLEM, USAGE, exit_code

CORE_COMMANDS: Mapping[str, tuple[str, str]] = {
    "config": ("Check the extensions config.", "moorage.cli.config"),
    "doctor": ("Check what a gateway here needs, and say how to mend it.", "moorage.cli.doctor"),
    "install": ("Install a plugin into this environment.", "moorage.cli.install"),
    "uninstall": ("Remove a plugin's distribution.", "moorage.cli.uninstall"),
    "servers": ("Probe the configured servers.", "moorage.cli.servers"),
    "plugins": ("List plugins, and say why one is not loaded.", "moorage.cli.plugins"),
}
PLUGINS_DIR_VARIABLE = "MOORAGE_PLUGINS_DIR"


def run(argv: Sequence[str]) -> int:
    """Run one command; returns the exit status. Errors end as one line on stderr."""
    try:
        return _run(argv)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read the output has gone (`moorage plugins | head`); do not stumble again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PROBLEM
    except Exception as error:
        if os.environ.get(DEBUG_VARIABLE):
            raise
        code, text = exit_code(error)
        print(f"moorage: {text}", file=sys.stderr)
        return code


def _run(argv: Sequence[str]) -> int:
    top, rest = _split(argv)
    options = _parser().parse_args(top)
    if options.plugins_dir is not None:
        os.environ[PLUGINS_DIR_VARIABLE] = os.path.abspath(options.plugins_dir)
    if options.help or not rest:
        print(_help(), end="")
        return OK if options.help else USAGE
    name, arguments = rest[0], rest[1:]
    if name in CORE_COMMANDS:
        about, module = CORE_COMMANDS[name]
        command: Any = importlib.import_module(module)
        parser = argparse.ArgumentParser(prog=f"moorage {name}", description=about, allow_abbrev=False)
        command.configure(parser)
        return int(command.run(parser.parse_args(arguments)))
    from moorage.cli.contributed import run_contributed

    return run_contributed(name, arguments)


def _split(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """What belongs to ``moorage`` itself, and the command with all that follows it."""
    top: list[str] = []
    rest = list(argv)
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        top.append(option)
        if option == "--plugins-dir" and rest:
            top.append(rest.pop(0))
    return top, rest


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="moorage",
        usage="moorage [OPTIONS] COMMAND ...",
        description="A plugin host for MCP gateways.",
        add_help=False,
        allow_abbrev=False,
    )
    parser.add_argument("-h", "--help", action="store_true", help="Show this message and exit.")
    parser.add_argument("--version", action="version", version=f"moorage {__version__}", help="Show it.")
    parser.add_argument(
        "--plugins-dir", metavar="DIR", help=f"Load single-file plugins from DIR ({PLUGINS_DIR_VARIABLE})."
    )
    return parser


def _help() -> str:
    from moorage.cli.announced import announced_commands, not_installed

    announced = announced_commands()
    rows = {name: about for name, (about, _) in CORE_COMMANDS.items()}
    rows |= {name: f"({distribution})" for name, distribution in announced.items() if name not in rows}
    width = max(map(len, rows)) + 2
    lines = [_parser().format_help(), "commands:"]
    lines += [f"  {name:<{width}}{rows[name]}" for name in sorted(rows)]
    missing = not_installed(rows)
    if missing:
        lines.append("\nnot installed:")
        lines += [f"  {distribution}: {', '.join(names)}" for distribution, names in missing.items()]
    lines.append("\nmoorage COMMAND --help says more of one.")
    return "\n".join(lines) + "\n"
