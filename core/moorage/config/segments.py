"""Takes configured texts apart into what may be shown and what is secret (ADMIN-1).

Joined, the segments of a text are the text again. A secret segment carries a label that says which secret
of the text it is, so that a masked one can be put back (ADMIN-2).
"""

import json
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from moorage.config.placeholders import pieces
from moorage.config.secrecy import MASK, is_secret_name, tokens_in

_FIRST_TOKEN = 0xE000
_LAST_TOKEN = 0xF8FF
_STANDS_FOR = re.compile(f"[{chr(_FIRST_TOKEN)}-{chr(_LAST_TOKEN)}]")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,31}://(?P<authority>[^\s/?#\"'<>]*)")
_ASSIGNMENT = re.compile(r"(?<![\w.-])-{0,2}(?P<name>[A-Za-z][\w.-]*)=(?P<value>[^\s;&\"',#]+)")
_INLINE_OPTION = re.compile(r"(?<!\S)--?(?P<name>[A-Za-z][\w-]*)[ \t]+(?P<value>[^\s-]\S*)")
_WHOLE_ASSIGNMENT = re.compile(r"(?P<name>-{0,2}[A-Za-z][\w.-]*)=(?P<value>.+)", re.DOTALL)
_HEADER = re.compile(r"(?P<name>[A-Za-z][A-Za-z0-9-]*):[ \t]*(?P<value>.+)", re.DOTALL)
_OPTION = re.compile(r"--?(?P<name>[A-Za-z][\w.-]*)")
_HEADER_OPTIONS = frozenset({"-H", "--header", "--headers"})
_AFTER_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*[ \t]+")


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a text; secret where it has a label."""

    text: str
    label: str | None = None

    @property
    def shown(self) -> str:
        return self.text if self.label is None else MASK


Segments = tuple[Segment, ...]


def shown(segments: Sequence[Segment]) -> str:
    return "".join(segment.shown for segment in segments)


def is_secret(segments: Sequence[Segment]) -> bool:
    return any(segment.label is not None for segment in segments)


def secret_segments(text: str, label: str = "value") -> Segments:
    """A text that is secret as a whole, but for a placeholder, alone or after a scheme word.

    A placeholder's default is literal, and secret.
    """
    if not text:
        return ()
    found = list(pieces(text))
    lead: Segments = ()
    if len(found) == 2 and found[0].name is None and _AFTER_SCHEME.fullmatch(found[0].text):
        lead = (Segment(found[0].text),)
        found = found[1:]
    if len(found) == 1 and (name := found[0].name) is not None:
        default = found[0].default
        if not default:
            return (*lead, Segment(found[0].text))
        return (*lead, Segment(f"${{{name}:-"), Segment(default, label), Segment("}"))
    return (Segment(text, label),)


def text_segments(text: str) -> Segments:
    """A text that may be shown, with what looks like a secret in it masked: a URL's user info and
    secret-looking query values, ``name=value`` with a secret-looking name, and well-known token forms."""
    if _is_secret_json(text):
        return (Segment(text, "json"),)
    if any(_FIRST_TOKEN <= ord(char) <= _LAST_TOKEN for char in text):
        return (Segment(text, "value"),)  # what stands for placeholders could not be told from it
    return _Cutter(text).cut()


def argument_segments(items: Sequence[object]) -> list[Segments | None]:
    """A command line, or any list that may be one; None for what is no text.

    Also masks the value of a secret-looking option, and headers and variables given as arguments.
    """
    result: list[Segments | None] = []
    before: str | None = None
    for item in items:
        if not isinstance(item, str):
            result.append(None)
            before = None
            continue
        result.append(_argument(item, before))
        before = item
    return _numbered(result)


def _argument(text: str, before: str | None) -> Segments:
    if before in _HEADER_OPTIONS and (header := _HEADER.fullmatch(text)):
        return _tail(text, header, f"header {header['name'].lower()}")
    option = _OPTION.fullmatch(before or "")
    if option and is_secret_name(option["name"], short=True) and not _OPTION.fullmatch(text):
        return secret_segments(text, f"option {before}")
    if (pair := _WHOLE_ASSIGNMENT.fullmatch(text)) and is_secret_name(pair["name"].lstrip("-"), short=True):
        return _tail(text, pair, f"assignment {pair['name']}")
    if (header := _HEADER.fullmatch(text)) and is_secret_name(header["name"]):
        return _tail(text, header, f"header {header['name'].lower()}")
    return text_segments(text)


def _tail(text: str, match: re.Match[str], label: str) -> Segments:
    return (Segment(text[: match.start("value")]), *secret_segments(match["value"], label))


def _numbered(lists: list[Segments | None]) -> list[Segments | None]:
    """The same labels with a number behind them, so that each is its own."""
    counts: dict[str, int] = {}
    result: list[Segments | None] = []
    for segments in lists:
        if segments is None:
            result.append(None)
            continue
        made = []
        for segment in segments:
            if segment.label is not None:
                counts[segment.label] = counts.get(segment.label, 0) + 1
                segment = Segment(segment.text, f"{segment.label} #{counts[segment.label]}")
            made.append(segment)
        result.append(tuple(made))
    return result


class _Cutter:
    """Finds secret regions. Placeholders count as one opaque character each while it looks."""

    def __init__(self, text: str) -> None:
        self._placeholders: list[str] = []
        self._text = ""
        for piece in pieces(text):
            if piece.name is None or len(self._placeholders) > _LAST_TOKEN - _FIRST_TOKEN:
                self._text += piece.text
            else:
                self._text += chr(_FIRST_TOKEN + len(self._placeholders))
                self._placeholders.append(piece.text)
        self._regions: list[tuple[int, int, str]] = []

    def cut(self) -> Segments:
        for url in _URL.finditer(self._text):
            self._user_info(url)
        for pair in _ASSIGNMENT.finditer(self._text):
            if is_secret_name(pair["name"], short=True):
                self._add(*pair.span("value"), f"value of {pair['name']}")
        for option in _INLINE_OPTION.finditer(self._text):
            if is_secret_name(option["name"]):
                self._add(*option.span("value"), f"value of {option['name']}")
        for start, end in tokens_in(self._text):
            self._add(start, end, "token")
        result: list[Segment] = []
        at = 0
        for start, end, label in self._regions:
            result.append(Segment(self._plain(at, start)))
            result.extend(secret_segments(self._plain(start, end), label))
            at = end
        result.append(Segment(self._plain(at, len(self._text))))
        numbered = _numbered([tuple(segment for segment in result if segment.text)])
        return numbered[0] or ()

    def _user_info(self, url: re.Match[str]) -> None:
        info, at_sign, _ = url["authority"].rpartition("@")
        if not at_sign:
            return
        start = url.start("authority")
        user, colon, password = info.partition(":")
        if user:
            self._add(start, start + len(user), "user")
        if colon and password:
            self._add(start + len(user) + 1, start + len(info), "password")

    def _add(self, start: int, end: int, label: str) -> None:
        place = bisect_left(self._regions, (start, end, label))
        before, after = self._regions[max(0, place - 1) : place], self._regions[place : place + 1]
        if all(found[1] <= start for found in before) and all(found[0] >= end for found in after):
            self._regions.insert(place, (start, end, label))

    def _plain(self, start: int, end: int) -> str:
        known = self._placeholders
        return _STANDS_FOR.sub(lambda one: known[ord(one[0]) - _FIRST_TOKEN], self._text[start:end])


def _is_secret_json(text: str) -> bool:
    """Whether the text is a JSON object or list that holds a literal under a secret-looking name."""
    if not text.lstrip().startswith(("{", "[")):
        return False
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return _holds_secret(value)


def _holds_secret(value: object, *, secret: bool = False) -> bool:
    match value:
        case dict():
            return any(_holds_secret(v, secret=secret or is_secret_name(k)) for k, v in value.items())
        case list():
            return any(_holds_secret(item, secret=secret) for item in value)
        case str():
            return is_secret(secret_segments(value) if secret else text_segments(value))
        case _:
            return False
