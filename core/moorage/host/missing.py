"""Which distribution brings a section that no loaded plugin claims (PLUG-4)."""

import json
from importlib.resources import files


def missing_distribution(section: str) -> str | None:
    """The distribution to install for a section of the shipped list; None where it is not listed."""
    known: dict[str, str] = json.loads(files("moorage.host").joinpath("known_sections.json").read_text())
    return known.get(section)
