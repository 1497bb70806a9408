"""``moorage uninstall``: a plugin's distribution out of the running environment (OPS-3)."""

import argparse
from importlib import metadata

from moorage.cli.exits import OK
from moorage.cli.install import GROUP, agree, agreement
from moorage.cli.installer import Installer, InstallFailed
from moorage.cli.output import print_json


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``uninstall``."""
    parser.add_argument("distribution", metavar="DISTRIBUTION", help="As `moorage plugins` shows it.")
    agreement(parser)


def run(options: argparse.Namespace) -> int:
    """Remove a distribution that brings plugins. What it needed stays: something else may need it, too."""
    name = options.distribution
    try:
        found = metadata.distribution(name)
    except (metadata.PackageNotFoundError, ValueError):
        raise InstallFailed(f"{name} is not installed") from None
    removed = f"{found.name} {found.version}"
    plugins = [point.name for point in found.entry_points if point.group == GROUP]
    if not plugins:
        raise InstallFailed(f"{name} brings no plugin, so it is not removed here")
    warning = f"Servers that use {', '.join(plugins)} will be refused at the next start."
    agree(options, warning, f"Remove {removed}?")
    Installer().uninstall(found.name)
    if options.json:
        print_json({"removed": removed, "plugins": plugins})
    else:
        print(f"Removed {removed}.")
    return OK
