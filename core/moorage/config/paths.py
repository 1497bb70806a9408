"""Where the extensions config lies (CONF-2)."""

from collections.abc import Mapping
from pathlib import Path

FILE_NAME = "extensions_config.json"
PATH_VARIABLE = "MOORAGE_EXTENSIONS_CONFIG_PATH"


def search_upward(cwd: Path) -> Path | None:
    """The nearest ``extensions_config.json`` in ``cwd`` or above it."""
    start = cwd.absolute()
    return next((at / FILE_NAME for at in (start, *start.parents) if (at / FILE_NAME).is_file()), None)


def named_path(explicit: Path | None, env: Mapping[str, str], cwd: Path) -> tuple[Path, str] | None:
    """The path that the operator named, and where; None where the search decides. Not checked."""
    if explicit is not None:
        return cwd / explicit, "--config or moorage.toml"
    if named := env.get(PATH_VARIABLE):
        return cwd / named, PATH_VARIABLE
    return None


def resolve_path(explicit: Path | None, env: Mapping[str, str], cwd: Path) -> Path | None:
    """Explicit path, then ``MOORAGE_EXTENSIONS_CONFIG_PATH``, then a search upward from ``cwd`` (CONF-2).

    An empty variable counts as unset. Raises `FileNotFoundError` where a named path does not exist; only
    the search may find nothing, which is None.
    """
    if (named := named_path(explicit, env, cwd)) is None:
        return search_upward(cwd)
    path, source = named
    if not path.exists():
        raise FileNotFoundError(f"the extensions config {path} (from {source}) does not exist")
    return path


def write_path(explicit: Path | None, env: Mapping[str, str], cwd: Path) -> Path:
    """Where a write goes: the file that `resolve_path` finds, else where its search would find a new one.

    Raises `FileNotFoundError` like `resolve_path`.
    """
    return resolve_path(explicit, env, cwd) or cwd.absolute() / FILE_NAME
