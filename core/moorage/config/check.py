"""What ``moorage config check`` says of a file (CONF-7)."""

import importlib
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol, cast

from moorage.config.loading import load
from moorage.config.paths import resolve_path
from moorage.config.sections import MissingDistribution, SectionSet
from moorage.contract import ConfigFault, ConfigSection


class _Contribution(Protocol):
    @property
    def spec(self) -> ConfigSection: ...


class SectionHost(Protocol):
    """What is needed of a plugin host."""

    def sections(self) -> Iterable[Any]:
        """Contributions, each with the section as ``spec``."""
        ...


def check_file(
    path: Path | None,
    host: SectionHost,
    *,
    missing_distribution: MissingDistribution | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> list[ConfigFault]:
    """Everything that is wrong in the file, the same that the gateway and the API would say.

    ``path`` None takes the file that a gateway started here would take. ``where`` of each fault names the
    place, with line and column where they are known. A file that cannot be found or read is a fault, too.
    """
    env = os.environ if env is None else env
    try:
        found = resolve_path(path, env, cwd or Path.cwd())
        if found is None:
            return []
        data = found.read_bytes()
    except FileNotFoundError as error:
        return [ConfigFault(where=str(path or error.filename or "the extensions config"), message=str(error))]
    except OSError as error:
        reason = error.strerror or type(error).__name__
        return [ConfigFault(where=str(path or error.filename), message=f"the file cannot be read: {reason}")]
    sections = SectionSet(
        [cast("_Contribution", contribution).spec for contribution in host.sections()],
        missing_distribution=missing_distribution or _known_distribution(),
    )
    return list(load(data, env=env, sections=sections, key=b"check").faults)


def _known_distribution() -> Callable[[str], str | None] | None:
    # Looked up by name: config and host are siblings, and neither needs the other to be imported.
    try:
        found = importlib.import_module("moorage.host").missing_distribution
    except (ImportError, AttributeError):
        return None
    return cast("Callable[[str], str | None]", found)
