"""Placeholders (CONF-3): ``$NAME`` alone, ``${NAME}`` and ``${NAME:-default}`` anywhere, ``$$``."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from moorage.config.document import JsonPath

_WHOLE = re.compile(r"\$(?P<name>[A-Za-z_][A-Za-z0-9_]*)", re.ASCII)
_INLINE = re.compile(r"\$\$|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}", re.ASCII)
_SLIP = re.compile(r"\$(?:(?P<bare>[A-Za-z_][A-Za-z0-9_]*)|\{(?:[a-z]+:)?(?P<braced>\w*)|\()", re.ASCII)
_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9_-]*)[ \t]+(?P<rest>\S.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a configured string: literal text, or a placeholder (``name`` is then set)."""

    text: str
    """As written."""
    name: str | None = None
    default: str | None = None


def pieces(text: str) -> Iterator[Piece]:
    """Take a string apart; joined, the texts are the string again."""
    if whole := _WHOLE.fullmatch(text):
        yield Piece(text, whole["name"])
        return
    end = 0
    for match in _INLINE.finditer(text):
        if match.start() > end:
            yield Piece(text[end : match.start()])
        yield Piece(match[0], match["name"], match["default"])
        end = match.end()
    if end < len(text):
        yield Piece(text[end:])


def is_placeholder(text: str) -> bool:
    """Whether the string is one placeholder, alone or after an authentication scheme word (ADMIN-1)."""
    found = list(pieces(text))
    if len(found) == 1:
        return found[0].name is not None
    if len(found) == 2 and found[0].name is None and found[1].name is not None:
        return re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*[ \t]+", found[0].text) is not None
    return False


def split_scheme(text: str) -> tuple[str, str] | None:
    """``Bearer xyz`` as scheme word and credential; None where the text has no such form."""
    match = _SCHEME.fullmatch(text)
    return (match["scheme"], match["rest"]) if match else None


@dataclass(frozen=True, slots=True)
class Note:
    """What was noticed about one string. Never holds a value."""

    kind: Literal["unset", "slip"]
    path: JsonPath
    message: str
    variable: str | None = None


@dataclass(slots=True)
class Resolution:
    """What resolving a tree found out beside the resolved values."""

    notes: list[Note] = field(default_factory=list)
    variables: dict[JsonPath, tuple[str, ...]] = field(default_factory=dict)
    """The variables that went into a string, by its path."""

    def unset_at(self, path: JsonPath) -> tuple[str, ...]:
        """The unset variables of one string."""
        return tuple(n.variable for n in self.notes if n.path == path and n.kind == "unset" and n.variable)


def resolve(value: Any, env: Mapping[str, str], path: JsonPath, found: Resolution) -> Any:
    """A copy of the tree with every placeholder replaced once; what a variable holds is left alone.

    What is noticed on the way is added to ``found``.
    """
    match value:
        case str():
            return _resolve_text(value, env, path, found) if "$" in value else value
        case dict():
            return {key: resolve(item, env, (*path, key), found) for key, item in value.items()}
        case list():
            return [resolve(item, env, (*path, index), found) for index, item in enumerate(value)]
        case _:
            return value


def _resolve_text(text: str, env: Mapping[str, str], path: JsonPath, found: Resolution) -> str:
    result, names = "", []
    for piece in pieces(text):
        if piece.name is None:
            result += "$" if piece.text == "$$" else piece.text
            if piece.text != "$$":
                found.notes.extend(_slips(piece.text, env, path))
            continue
        names.append(piece.name)
        value = env.get(piece.name)
        if piece.default is not None:
            if "${" in piece.default:
                found.notes.append(Note("slip", path, "a default cannot hold a placeholder of its own"))
            # Like a shell, a default also stands in for a variable that is set and empty.
            result += value or piece.default.replace("$$", "$")
        elif value is None:
            message = f"environment variable {piece.name} is not set; it counts as empty"
            found.notes.append(Note("unset", path, message, piece.name))
        else:
            result += value
    if names:
        found.variables[path] = tuple(names)
    return result


def _slips(literal: str, env: Mapping[str, str], path: JsonPath) -> Iterator[Note]:
    for match in _SLIP.finditer(literal):
        name = match["bare"] or match["braced"]
        # The text may be a password with a dollar sign in it: only a variable that exists, or one after an
        # authentication scheme word, is named.
        if name and (name in env or re.fullmatch(r"[A-Za-z]+ \$[A-Za-z_]\w*", literal, re.ASCII)):
            advice = f"write ${{{name}}} if the environment variable {name} is meant"
        else:
            advice = "write ${NAME} if an environment variable is meant"
        yield Note("slip", path, f"a `$` that starts no placeholder is taken literally: {advice}, $$ if not")
        return
