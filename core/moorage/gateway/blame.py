"""Whose code it is that runs, blocks or is left behind (PLUG-7)."""

from collections.abc import Mapping
from types import FrameType

from moorage.host import LoadReport


def owners(reports: tuple[LoadReport, ...]) -> Mapping[str, str]:
    """Package → the loaded plugin whose entry point lies in it."""
    found: dict[str, str] = {}
    for report in reports:
        if report.loaded:
            module = report.entry_point.partition(":")[0]
            package, _, last = module.rpartition(".")
            found[package if package and last == "plugin" else module] = report.name
    return found


def plugin_on_stack(frame: FrameType, packages: Mapping[str, str]) -> tuple[str | None, FrameType]:
    """The plugin whose code is innermost on the stack, and where it is; None and the frame itself where it is
    nobody's."""
    at: FrameType | None = frame
    while at is not None:
        if (plugin := plugin_of(at, packages)) is not None:
            return plugin, at
        at = at.f_back
    return None, frame


def plugin_of(frame: FrameType, packages: Mapping[str, str]) -> str | None:
    """The plugin whose code runs in this very frame."""
    name = str(frame.f_globals.get("__name__", ""))
    while name:
        if name in packages:
            return packages[name]
        name = name.rpartition(".")[0]
    return None


def place(frame: FrameType) -> str:
    """The frame as ``module:line (function)``."""
    return f"{frame.f_globals.get('__name__')}:{frame.f_lineno} ({frame.f_code.co_name})"
