"""Which distribution to install for a name that no loaded plugin knows (PLUG-4)."""

import json
from importlib.resources import files
from typing import Literal

Kind = Literal["sections", "drivers", "stores", "assistants", "sinks", "commands"]


def missing_distribution(name: str, kind: Kind | None = None) -> str | None:
    """The distribution that brings this section, driver, … (of any kind, unless one is given); None where
    the core has never heard of it."""
    known: dict[str, dict[str, str]] = json.loads(
        files("moorage.host").joinpath("known_sections.json").read_text(encoding="utf-8")
    )
    kinds = (kind,) if kind else tuple(known)
    return next((known[k][name] for k in kinds if name in known[k]), None)
