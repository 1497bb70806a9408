"""Which plugins are installed: sorted, nothing imported (PLUG-1, PLUG-3)."""

import importlib
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import importlib_metadata

from moorage.contract.version import PLUGIN_GROUP

LOCAL_PACKAGE = "moorage_local_plugins"
_ENTRY_POINT = re.compile(r"(?P<module>[\w.]+)\s*(:\s*(?P<attribute>[\w.]+)\s*)?(\[.*\]\s*)?")


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something that claims to be a plugin. ``load`` imports it and may do anything at all."""

    name: str
    distribution: str
    version: str
    entry_point: str
    load: Callable[[], Any] = field(repr=False, compare=False)
    module: str | None = None
    """The module of the plugin object, where it is known before the import."""
    requested: bool = False


def discover(group: str = PLUGIN_GROUP) -> tuple[Candidate, ...]:
    """All entry points of the group, in an order that does not depend on how they were installed.

    A distribution that lies on the path twice counts once: the earlier folder wins as it does for imports,
    and within one folder (a stale ``dist-info`` that was left behind) the newer version.
    """
    candidates = [
        _from_entry_point(point.name, point.value, name, version)
        for name, version, points in _distributions(group)
        for point in points
    ]
    return tuple(sorted(candidates, key=lambda c: (c.name, c.distribution, c.entry_point)))


def discover_files(directory: Path) -> tuple[Candidate, ...]:
    """The single-file plugins of a folder: ``*.py`` that do not start with an underscore (PLUG-9).

    Raises `OSError` where the folder cannot be read.
    """
    files = sorted(p for p in directory.iterdir() if p.suffix == ".py" and not p.name.startswith("_"))
    return tuple(
        Candidate(
            name=file.stem,
            distribution="(file)",
            version="",
            entry_point=str(file),
            load=_file_loader(file),
            module=f"{LOCAL_PACKAGE}.{file.stem}",
            requested=True,
        )
        for file in files
    )


def announced_names(group: str) -> tuple[str, ...]:
    """The names of a group's entry points, sorted, once each."""
    return tuple(sorted({point.name for point in importlib_metadata.entry_points(group=group)}))


def import_object(module: str, attribute: str | None) -> Any:
    """What ``module:attribute`` names; raises `LookupError` for an attribute that is not there."""
    found: Any = importlib.import_module(module)
    for part in attribute.split(".") if attribute else ():
        try:
            found = getattr(found, part)
        except AttributeError:
            raise LookupError(f"{module!r} has no attribute {attribute!r}") from None
    return found


def _distributions(group: str) -> Iterable[tuple[str, str, Iterable[Any]]]:
    chosen: dict[str, tuple[str, str, str, Iterable[Any]]] = {}
    for distribution in importlib_metadata.distributions():
        points = distribution.entry_points.select(group=group)
        if not points:
            continue
        name, version = _identity(distribution)
        key = re.sub(r"[-_.]+", "-", name).lower()
        folder = str(distribution.locate_file(""))
        known = chosen.get(key)
        if known is None or (known[0] == folder and _newer(version, known[2])):
            chosen[key] = (folder, name, version, points)
    return [(name, version, points) for _, name, version, points in chosen.values()]


def _identity(distribution: Any) -> tuple[str, str]:
    # A damaged dist-info has entry points but no readable metadata; it is still to be reported by a name.
    try:
        metadata = distribution.metadata
        name, version = metadata["Name"], metadata["Version"]
    except Exception:
        name = version = None
    folder = Path(str(getattr(distribution, "_path", "unknown")))
    return name or folder.stem.partition("-")[0], version or "unknown"


def _newer(version: str, than: str) -> bool:
    from packaging.version import InvalidVersion, Version

    try:
        return Version(version) > Version(than)
    except InvalidVersion:
        return version > than


def _from_entry_point(name: str, value: str, distribution: str, version: str) -> Candidate:
    match = _ENTRY_POINT.fullmatch(value.strip())

    def load() -> Any:
        if match is None:
            raise LookupError(f"the entry point {value!r} is no module and no module:attribute")
        return import_object(match["module"], match["attribute"])

    return Candidate(
        name=name,
        distribution=distribution,
        version=version,
        entry_point=value,
        load=load,
        module=match["module"] if match else None,
    )


def _file_loader(file: Path) -> Callable[[], Any]:
    name = f"{LOCAL_PACKAGE}.{file.stem}"

    def load() -> Any:
        spec = spec_from_file_location(name, file)
        if spec is None or spec.loader is None:
            raise LookupError(f"{file} cannot be loaded as a module")
        module = module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            sys.modules.pop(name, None)
            raise
        return module

    return load
