"""Which commands are installed, by the names of their entry points; nothing is loaded (PLUG-8)."""

import importlib_metadata

# Not from the contract, whose import costs more than the whole help; a test holds the two together.
GROUP = "moorage.cli"


def announced_commands() -> dict[str, str]:
    """Command name → the distribution that announces it."""
    points = importlib_metadata.entry_points(group=GROUP)
    return {point.name: point.dist.name if point.dist else "unknown" for point in points}


def not_installed(present: "dict[str, str]") -> dict[str, list[str]]:
    """Distribution → known commands that nothing here announces."""
    missing: dict[str, list[str]] = {}
    for name, distribution in known_commands().items():
        if name not in present:
            missing.setdefault(distribution, []).append(name)
    return missing


def known_commands() -> dict[str, str]:
    """Command name → the distribution that brings it, as the core ships it."""
    import json
    from pathlib import Path

    import moorage

    file = Path(moorage.__path__[0], "host", "known_sections.json")
    commands: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))["commands"]
    return commands
