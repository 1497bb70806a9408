"""JSON text with the place of every value, so that a fault can name its line and column."""

import json
from dataclasses import dataclass, field
from typing import Any

JsonPath = tuple[str | int, ...]
_BLANK = " \t\r\n"
DEPTH_LIMIT = 200
"""Levels of nesting that are read and written; a real configuration has about six."""
_DECODER = json.JSONDecoder()


class DocumentError(Exception):
    """The text is no JSON. The message never quotes the text; line and column count from 1."""

    def __init__(self, message: str, *, line: int = 1, column: int = 1) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed JSON text.

    ``positions`` maps a path to the line and column of its key, or of the value itself in a list.
    ``duplicates`` are paths whose key is given more than once in one object; the last one counts.
    """

    value: Any
    positions: dict[JsonPath, tuple[int, int]] = field(default_factory=dict, repr=False)
    duplicates: tuple[JsonPath, ...] = ()

    def position(self, path: JsonPath) -> tuple[int, int] | None:
        """Line and column of the path or of its nearest known ancestor."""
        for length in range(len(path), 0, -1):
            if (found := self.positions.get(path[:length])) is not None:
                return found
        return None

    def where(self, path: JsonPath) -> str:
        """The path as text, with line and column where they are known."""
        found = self.position(path)
        return dotted(path) + (f" (line {found[0]}, column {found[1]})" if found else "")


def dotted(path: JsonPath) -> str:
    """``("mcpServers", "a.b", "args", 1)`` as ``mcpServers."a.b".args[1]``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
            continue
        plain = part.isprintable() and part and not any(c in part for c in '."[] ')
        text += ("." if text else "") + (part if plain else json.dumps(part))
    return text


def parse_document(data: bytes) -> Document:
    """Parse UTF-8 (or UTF-16, UTF-32) JSON, with or without a byte-order mark.

    ``NaN`` and ``Infinity`` are read as numbers, so that they can be refused where they stand (CONF-8).
    Raises `DocumentError`.
    """
    encoding = json.detect_encoding(data)
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DocumentError(f"the file is no {encoding} text", line=line) from None
    text = text.removeprefix("\ufeff")
    if not text.strip(_BLANK):
        raise DocumentError("the file is empty")
    return _Scanner(text).document()


class _Scanner:
    """A JSON scanner that remembers positions; scalars are left to the standard library."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._positions: dict[JsonPath, tuple[int, int]] = {}
        self._duplicates: list[JsonPath] = []
        self._counted_to, self._line, self._line_start = 0, 1, 0

    def document(self) -> Document:
        value, end = self._value(self._skip(0), (), 0)
        end = self._skip(end)
        if end != len(self._text):
            raise self._error("there is more text after the end of the JSON value", end)
        return Document(value, self._positions, tuple(dict.fromkeys(self._duplicates)))

    def _value(self, at: int, path: JsonPath, depth: int) -> tuple[Any, int]:
        if depth > DEPTH_LIMIT:
            raise self._error(f"values are nested deeper than {DEPTH_LIMIT} levels", at)
        match self._text[at : at + 1]:
            case "{":
                return self._object(at + 1, path, depth + 1)
            case "[":
                return self._array(at + 1, path, depth + 1)
            case _:
                return self._scalar(at)

    def _object(self, at: int, path: JsonPath, depth: int) -> tuple[dict[str, Any], int]:
        result: dict[str, Any] = {}
        at = self._skip(at)
        if self._text[at : at + 1] == "}":
            return result, at + 1
        while True:
            if self._text[at : at + 1] != '"':
                raise self._error("a key in double quotes is expected here", at)
            key, end = self._scalar(at)
            here = (*path, key)
            if key in result:
                self._duplicates.append(here)
            self._positions[here] = self._place(at)
            end = self._skip(end)
            if self._text[end : end + 1] != ":":
                raise self._error("a colon is expected after the key", end)
            result[key], at = self._value(self._skip(end + 1), here, depth)
            at, done = self._next(at, "}")
            if done:
                return result, at

    def _array(self, at: int, path: JsonPath, depth: int) -> tuple[list[Any], int]:
        result: list[Any] = []
        at = self._skip(at)
        if self._text[at : at + 1] == "]":
            return result, at + 1
        while True:
            here = (*path, len(result))
            self._positions[here] = self._place(at)
            value, at = self._value(at, here, depth)
            result.append(value)
            at, done = self._next(at, "]")
            if done:
                return result, at

    def _next(self, at: int, closing: str) -> tuple[int, bool]:
        at = self._skip(at)
        char = self._text[at : at + 1]
        if char == closing:
            return at + 1, True
        if char != ",":
            what = "the file ends too early" if not char else f"a comma or {closing!r} is expected here"
            raise self._error(what, at)
        return self._skip(at + 1), False

    def _scalar(self, at: int) -> tuple[Any, int]:
        if at >= len(self._text):
            raise self._error("the file ends too early", at)
        try:
            return _DECODER.raw_decode(self._text, at)
        except json.JSONDecodeError as error:
            message = "a value is expected here" if error.msg.startswith("Expecting") else error.msg
            raise self._error(message, error.pos) from None
        except ValueError:  # an integer of more digits than Python converts
            raise self._error("the number has too many digits", at) from None

    def _skip(self, at: int) -> int:
        text = self._text
        while at < len(text) and text[at] in _BLANK:
            at += 1
        return at

    def _place(self, at: int) -> tuple[int, int]:
        # Positions are asked for in ascending order, so the lines are counted once.
        if at >= self._counted_to:
            breaks = self._text.count("\n", self._counted_to, at)
            if breaks:
                self._line += breaks
                self._line_start = self._text.rindex("\n", self._counted_to, at) + 1
            self._counted_to = at
        return self._line, at - self._line_start + 1

    def _error(self, message: str, at: int) -> DocumentError:
        line = self._text.count("\n", 0, at) + 1
        return DocumentError(message, line=line, column=at - self._text.rfind("\n", 0, at))
