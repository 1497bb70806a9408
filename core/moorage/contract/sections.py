"""Config sections: the parts of a server's config that plugins own (PLUG-5)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from pydantic import BaseModel

SectionLevel = Literal["server", "tool"]


@dataclass(frozen=True, slots=True)
class ConfigSection:
    """Contributes one key of a server's (or a tool's) config.

    ``load_model`` returns the pydantic model that validates it; it is called lazily, so that listing
    plugins imports no pydantic (PLUG-8). The model sets ``extra="allow"`` where unknown keys are to be
    kept; the loader warns about them with the nearest known name.

    ``secret_paths``: dotted paths inside the section; ``*`` matches every key (``users.*``).
    ``presentation_paths``: what may change without a restart on a task-enabled server (TASK-18); ``*``
    alone means all of it. ``mask`` is given the stored block and returns what a GET shows, ``merge`` is
    given the submitted and the stored block and returns what is stored; without them the generic rules
    for ``secret_paths`` apply (ADMIN-1, ADMIN-2).
    """

    name: str
    load_model: "Callable[[], type[BaseModel]]"
    levels: frozenset[SectionLevel] = frozenset({"server"})
    accepts_list: bool = False
    """The block is a list of the model's objects."""
    secret_paths: tuple[str, ...] = ()
    secrets_as_null: bool = False
    """A GET shows literal secrets as null; in a PUT null keeps and an empty string clears (ADMIN-2)."""
    destination_paths: tuple[str, ...] = ()
    """Dotted paths that say where the secrets are sent (``token_url``): with another host there, a PUT must
    bring the secrets anew (ADMIN-2). The server's own URL or command counts in any case."""
    presentation_paths: tuple[str, ...] = ()
    http_only: bool = False
    """Warned about and skipped on a stdio server (CRED-6)."""
    mask: Callable[[Any], Any] | None = None
    merge: Callable[[Any, Any], Any] | None = None
    check: Callable[[str, Any, Mapping[str, Any]], tuple[str, ...]] | None = None
    """``(server name, validated block, raw server entry) -> warnings``; raises `ConfigError` to refuse."""
