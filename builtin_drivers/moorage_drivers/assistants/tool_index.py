"""Finding tools by words: what `tool_search` ranks, and what keywords promote (ROUTE-4)."""

import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from moorage.contract import ROUTING_METADATA, GatewayTool

MAX_QUERY_WORDS = 32
MAX_MESSAGE_CHARACTERS = 100_000
_SEARCHED_CHARACTERS = 2_000
_WORD = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# Scripts that put no spaces between words: there, a keyword may stand anywhere.
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")


@dataclass(frozen=True, slots=True)
class _Indexed:
    tool: GatewayTool
    priority: int
    keywords: tuple[str, ...]
    """Of a preferred tool only: `off` means that the operator wants no help with it."""


def identity(tool: GatewayTool) -> str:
    """Name and origin: a promotion must not pass to another tool that has the name now."""
    origin = hashlib.sha256(f"{tool.server}\0{tool.raw_name}".encode()).hexdigest()[:16]
    return f"{tool.name}:{origin}"


class ToolIndex:
    """The deferred tools of one run."""

    def __init__(self, tools: Iterable[GatewayTool]) -> None:
        self._indexed = [_indexed(tool) for tool in tools]
        self.by_name = {one.tool.name: one.tool for one in self._indexed}

    def search(self, query: str, limit: int) -> Sequence[GatewayTool]:
        """The best matches: rare words count more than common ones, names more than descriptions."""
        wanted = list(dict.fromkeys(_words(query)))[:MAX_QUERY_WORDS]
        exact = {part.casefold() for part in re.split(r"[\s,;'\"`]+", query) if part}
        scored = [(one, _hits(one, wanted)) for one in self._indexed]
        known = {word: sum(word in hits for _, hits in scored) for word in wanted}
        weight = {word: math.log(1 + len(scored) / count) for word, count in known.items() if count}
        ranked = []
        for one, hits in scored:
            score = sum(weight[word] * hit for word, hit in hits.items())
            if {one.tool.name.casefold(), one.tool.raw_name.casefold()} & exact:
                score += 1_000.0
            if score:
                ranked.append((-score, -one.priority, one.tool.name, one.tool))
        return [tool for *_, tool in sorted(ranked, key=lambda item: item[:3])[:limit]]

    def for_message(self, text: str, limit: int) -> Sequence[GatewayTool]:
        """Those with a keyword in the text, as a whole word: by priority, then name."""
        folded = text[:MAX_MESSAGE_CHARACTERS].casefold()
        found = [
            (-one.priority, one.tool.name, one.tool)
            for one in self._indexed
            if any(_stands_in(keyword, folded) for keyword in one.keywords)
        ]
        return [tool for *_, tool in sorted(found, key=lambda item: item[:2])[:limit]]


def _indexed(tool: GatewayTool) -> _Indexed:
    hint = tool.metadata.get(ROUTING_METADATA)
    if not isinstance(hint, Mapping):
        return _Indexed(tool, 0, ())
    priority, keywords = hint.get("priority"), hint.get("keywords")
    folded = (" ".join(k.casefold().split()) for k in keywords or () if isinstance(k, str))
    preferred = hint.get("mode") == "prefer"
    return _Indexed(
        tool,
        priority if isinstance(priority, int) else 0,
        tuple(dict.fromkeys(k for k in folded if k)) if preferred else (),
    )


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(_CAMEL.sub(" ", text))]


def _hits(one: _Indexed, wanted: Sequence[str]) -> Mapping[str, float]:
    """How well each wanted word is met."""
    tool = one.tool
    named = {*_words(tool.name), *_words(tool.raw_name), *_words(tool.server)}
    topics = {word for keyword in one.keywords for word in _words(keyword)}
    described = tool.description[:_SEARCHED_CHARACTERS].casefold()
    words = {*_words(tool.description[:_SEARCHED_CHARACTERS])}
    found: dict[str, float] = {}
    for word in wanted:
        if word in named or word in topics:
            found[word] = 3.0
        elif word in words or any(_akin(word, name) for name in named):
            found[word] = 1.0
        elif (len(word) > 3 or _UNSPACED.search(word)) and word in described:
            found[word] = 0.5
    return found


def _akin(word: str, name: str) -> bool:
    """Invoice and invoices."""
    return min(len(word), len(name)) > 3 and (word.startswith(name) or name.startswith(word))


def _stands_in(keyword: str, text: str) -> bool:
    start = text.find(keyword)
    while start >= 0:
        end = start + len(keyword)
        if not _joined(text[start - 1 : start], keyword[0]) and not _joined(keyword[-1], text[end : end + 1]):
            return True
        start = text.find(keyword, start + 1)
    return False


def _joined(left: str, right: str) -> bool:
    """Whether two neighbouring characters are of one word."""
    return all(_WORD.match(one) and not _UNSPACED.match(one) for one in (left, right))
