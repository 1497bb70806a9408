"""``moorage plugins``: what is installed, what is loaded, and why not (PLUG-4)."""

import argparse
import inspect
from typing import Any

from moorage.cli import new_plugin
from moorage.cli.exits import OK, PROBLEM, UsageError
from moorage.cli.output import print_json, print_table
from moorage.cli.session import host as load_host
from moorage.host import LoadReport, PluginHost, PluginState
from moorage.host.hooks import HOOKS


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    _json(parser)
    parser.set_defaults(act=_list)
    commands = parser.add_subparsers(metavar="COMMAND", title="commands")
    for name, act, about in (
        ("list", _list, "Every plugin with its distribution, version, hooks and state; the default."),
        ("show", _show, "All that is known of one plugin."),
        ("check", _check, "Exit with 1 if a plugin is not loaded that is not blocked either."),
        ("hooks", _hooks, "Every hook, and who implements it."),
    ):
        command = commands.add_parser(name, help=about, description=about, allow_abbrev=False)
        _json(command, default=argparse.SUPPRESS)
        command.set_defaults(act=act)
        if act is _show:
            command.add_argument("name", metavar="NAME", help="The plugin's name.")
    about = "Write the project of a new plugin, with tests that hold it to what Moorage asks."
    new = commands.add_parser("new", help=about, description=about, allow_abbrev=False)
    _json(new, default=argparse.SUPPRESS)
    new_plugin.configure(new)
    new.set_defaults(act=None)


def run(options: argparse.Namespace) -> int:
    """Returns the exit status."""
    if options.act is None:
        # Needs no host: a broken plugin must not keep anybody from writing another one.
        return new_plugin.create(options)
    return int(options.act(load_host(), options))


def _json(parser: argparse.ArgumentParser, **more: Any) -> None:
    parser.add_argument("--json", action="store_true", help="Print JSON, for scripts.", **more)


def _list(host: PluginHost, options: argparse.Namespace) -> int:
    if options.json:
        print_json([report.as_dict() for report in host.reports])
        return OK
    if not host.reports:
        print(_nothing_installed())
        return OK
    print_table(
        ("plugin", "distribution", "version", "state", "hooks, or what is wrong"),
        [
            (r.name, r.distribution, r.version, str(r.state), r.error or ", ".join(map(_short, r.hooks)))
            for r in host.reports
        ],
        states=3,
    )
    print(host.counted())
    return OK


def _check(host: PluginHost, options: argparse.Namespace) -> int:
    amiss = [r for r in host.reports if r.state in (PluginState.FAILED, PluginState.REFUSED)]
    if options.json:
        print_json({"ok": not amiss, "plugins": [r.as_dict() for r in amiss]})
    else:
        for report in amiss:
            print(f"{report.name} ({report.source}) is {report.state}: {report.error}")
        print(host.counted())
    return PROBLEM if amiss else OK


def _show(host: PluginHost, options: argparse.Namespace) -> int:
    same = [r for r in host.reports if r.name == options.name]
    if not same:
        known = ", ".join(r.name for r in host.reports) or "none is installed"
        raise UsageError(f"there is no plugin {options.name!r}; there are: {known}")
    if options.json:
        print_json([{**r.as_dict(), "order": _order(host, r)} for r in same])
        return OK
    for report in same:
        print_table(("what", ""), _facts(host, report), states=1)
    return OK


def _facts(host: PluginHost, report: LoadReport) -> list[tuple[str, str]]:
    facts = [
        ("plugin", report.name),
        ("state", str(report.state)),
        ("distribution", report.source),
        ("entry point", report.entry_point),
        ("plugin API", report.api_range or "not declared"),
        ("hooks", ", ".join(map(_short, report.hooks)) or "none"),
        ("loaded in", f"{report.seconds * 1000:.1f} ms"),
    ]
    if report.error:
        facts.insert(2, ("reason", report.error))
    return facts + [("contributes", line) for line in _order(host, report)]


def _order(host: PluginHost, report: LoadReport) -> list[str]:
    """One line a contribution: what it is, and where it stands among those of its hook and why."""
    lines = []
    for info in report.contributions:
        kind = HOOKS[info.hook].kind
        turned_on = f", for servers with section {info.section!r}" if info.section else ""
        place = ""
        if info.precedence is not None:
            place = f", {host.order(report, info)}"
        lines.append(f"{kind} {info.name!r}{place}{turned_on}")
    return lines


def _hooks(host: PluginHost, options: argparse.Namespace) -> int:
    from moorage.contract import hookspecs

    rows = []
    for name in sorted(HOOKS):
        about = (inspect.getdoc(getattr(hookspecs, name)) or "").partition("\n")[0]
        plugins = [r.name for r in host.reports if r.loaded and name in r.hooks]
        rows.append((name, about, plugins))
    if options.json:
        print_json([{"hook": name, "about": about, "plugins": plugins} for name, about, plugins in rows])
    else:
        print_table(
            ("hook", "plugins", "what it contributes"),
            [(name, ", ".join(plugins) or "-", about) for name, about, plugins in rows],
        )
    return OK


def _nothing_installed() -> str:
    return (
        "No plugins are installed. The built-in ones come with the distributions moorage-drivers (stores, "
        "MCP servers, task drivers, assistants), moorage-plugins (credentials, routing, launch policy) and "
        "moorage-api (the HTTP service): install moorage for all of them."
    )


def _short(hook: str) -> str:
    return hook.removeprefix("moorage_")
