"""Plugins of the test suite as installed distributions, for gateways in processes of their own."""

import os
from pathlib import Path

import support


def installed(site: Path, *plugins: str) -> str:
    """A ``PYTHONPATH`` under which the modules ``support.<plugin>`` are plugins of distributions."""
    for plugin in plugins:
        information = site / f"{plugin}-1.0.dist-info"
        information.mkdir(parents=True)
        (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {plugin}\nVersion: 1.0\n")
        (information / "entry_points.txt").write_text(f"[moorage.plugins]\n{plugin} = support.{plugin}\n")
    return os.pathsep.join([str(site), str(Path(support.__file__).parents[1])])
