"""Puts the repository's ``plugin_template/`` into the distribution, for ``moorage plugins new``."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface[Any]):
    """In the repository the template lies beside this folder, in a source distribution inside of it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        root = Path(self.root)
        places = (root / "plugin_template", root.parent / "plugin_template")
        template = next((place for place in places if place.is_dir()), None)
        if template is None:
            raise RuntimeError("plugin_template/ is missing, and the distribution needs it")
        inside = "plugin_template" if self.target_name == "sdist" else "moorage/plugin_template"
        build_data["force_include"][str(template)] = inside
