"""Which values of a server's config are secret, by where they stand; nothing here knows a section by name.

A rule belongs to one place of the tree and hands out the rules of the places below (ADMIN-1, PLUG-5).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from moorage.config.secrecy import is_secret_name
from moorage.config.sections import SectionSet, model_of
from moorage.config.segments import (
    Segment,
    Segments,
    argument_segments,
    secret_segments,
    text_segments,
)
from moorage.config.shapes import is_mapping, known_keys, nested_model
from moorage.contract import ConfigError, ConfigSection, SectionLevel

if TYPE_CHECKING:
    from pydantic import BaseModel

Patterns = tuple[tuple[str, ...], ...]


class Rule:
    """Shows texts, but for what looks like a secret in them; names of keys mean nothing."""

    secret = False
    """Every value is secret."""
    as_null = False
    """A secret is shown as null instead of the mask."""
    section: ConfigSection | None = None
    """The section whose block starts here."""

    def child(self, key: str) -> "Rule":
        return self

    def item(self, index: int) -> "Rule":
        """The rule of a list's item."""
        return self

    def text(self, text: str) -> Segments:
        return text_segments(text)

    def texts(self, items: Sequence[Any]) -> list[Segments | None]:
        """Segments of a list's texts; None for an item that is no text."""
        return argument_segments(items)


class Secret(Rule):
    """Every literal value below is secret."""

    secret = True

    def __init__(self, *, as_null: bool = False) -> None:
        self.as_null = as_null

    def text(self, text: str) -> Segments:
        return secret_segments(text)

    def texts(self, items: Sequence[Any]) -> list[Segments | None]:
        return [
            tuple(Segment(s.text, f"{s.label} #{index}" if s.label else None) for s in self.text(item))
            if isinstance(item, str)
            else None
            for index, item in enumerate(items)
        ]


class Guess(Rule):
    """Extra keys: secret where the key's name looks so, at any depth."""

    def child(self, key: str) -> Rule:
        return Secret() if is_secret_name(key) else self


class Block(Rule):
    """A section's block: secret is what the section declares; unknown keys are guessed about."""

    def __init__(
        self,
        model: "type[BaseModel] | None",
        patterns: Patterns,
        *,
        as_null: bool,
        free: bool = False,
        section: ConfigSection | None = None,
    ) -> None:
        self._model = model
        self._patterns = patterns
        self._as_null = as_null
        self._free = free
        self.section = section

    def child(self, key: str) -> Rule:
        rest = tuple(pattern[1:] for pattern in self._patterns if pattern and pattern[0] in (key, "*"))
        if any(not pattern for pattern in rest):
            return Secret(as_null=self._as_null)
        if self._free:
            return Block(self._model, rest, as_null=self._as_null)
        if self._model is None:
            return Block(None, rest, as_null=self._as_null) if rest else Rule()
        known = known_keys(self._model)
        if key not in known:
            return Guess().child(key)
        inner = nested_model(known[key])
        free = inner is not None and is_mapping(known[key])
        return Block(inner, rest, as_null=self._as_null, free=free) if inner is not None or rest else Rule()

    def item(self, index: int) -> Rule:
        if self.section is not None:
            return Block(self._model, self._patterns, as_null=self._as_null)
        stars = any(pattern[:1] == ("*",) for pattern in self._patterns)
        return self.child("*") if stars else self

    def text(self, text: str) -> Segments:
        # An object is expected here; where secrets would lie inside it, a bare text is no less secret.
        return secret_segments(text) if self._patterns else text_segments(text)

    def texts(self, items: Sequence[Any]) -> list[Segments | None]:
        rule = self.item(0)
        if rule.secret or not self._patterns:
            return (rule if rule.secret else Rule()).texts(items)
        return Secret(as_null=self._as_null).texts(items)


class _Tools(Rule):
    def __init__(self, sections: SectionSet) -> None:
        self._tool = _Keys(sections, "tool")

    def child(self, key: str) -> Rule:
        return self._tool


class _Keys(Rule):
    """The keys of a server's or a tool's object."""

    def __init__(self, sections: SectionSet, level: SectionLevel) -> None:
        self._sections = sections
        self._level: SectionLevel = level

    def child(self, key: str) -> Rule:
        if self._level == "server":
            if key in ("env", "headers"):
                return Secret()
            if key in ("command", "args", "cwd", "url", "type", "transport"):
                return Rule()
            if key == "tools":
                return _Tools(self._sections)
        if (section := self._sections.get(key, self._level)) is not None:
            return block_rule(section)
        return Secret() if self._sections.missing(key) else Guess().child(key)


def server_rule(sections: SectionSet) -> Rule:
    """The rule of one entry of ``mcpServers``."""
    return _Keys(sections, "server")


def block_rule(section: ConfigSection) -> Rule:
    """The rule of a section's block. Where its plugin fails, everything in it is secret."""
    try:
        model = model_of(section)
    except ConfigError:
        return Secret()
    patterns = tuple(tuple(path.split(".")) for path in section.secret_paths)
    return Block(model, patterns, as_null=section.secrets_as_null, section=section)
