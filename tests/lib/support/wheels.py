"""Wheels made by hand: no build, no network."""

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path


def wheel(
    folder: Path,
    name: str,
    files: Mapping[str, str],
    *,
    plugins: Mapping[str, str] | None = None,
    scripts: Mapping[str, str] | None = None,
    requires: Sequence[str] = (),
    version: str = "1.0",
) -> Path:
    """A pure wheel with these files and entry points: plugins of Moorage's, and commands."""
    stem = f"{name.replace('-', '_')}-{version}"
    info = f"{stem}.dist-info"
    metadata = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}"]
    metadata += [f"Requires-Dist: {one}" for one in requires]
    content = {
        **files,
        f"{info}/METADATA": "\n".join(metadata) + "\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    groups = {"moorage.plugins": plugins or {}, "console_scripts": scripts or {}}
    points = [
        f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in entries.items())
        for group, entries in groups.items()
        if entries
    ]
    if points:
        content[f"{info}/entry_points.txt"] = "\n".join(points)
    content[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in (*content, f"{info}/RECORD"))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for inside, text in content.items():
            archive.writestr(inside, text)
    return path
