"""Known secrets are taken out of what quotes a server (CRED-9)."""

import base64
import binascii
import json
import threading
from collections import Counter, OrderedDict
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

MASK = "***"
SHORTEST = 8
"""Shorter values are not redacted: too much that is no secret would match."""
_SCHEMES = frozenset({"basic", "bearer", "dpop", "token", "apikey", "api-key", "key", "negotiate", "digest"})


class SecretRegistry:
    """Knows secret values and replaces them in texts (`Redactor`).

    A value is recognised as it is, percent-encoded, as JSON spells it, without its authentication scheme,
    and a password in ``Basic`` also in clear. Of a value that a cut end of the text holds in part, a piece
    of at least `SHORTEST` characters is recognised. The cost of `redact` grows with the text, not with the
    number of secrets. Of values that are not ``lasting`` the newest ``keep`` are known.
    """

    def __init__(self, *, keep: int = 10_000) -> None:
        self._lock = threading.Lock()
        self._keep = keep
        self._lasting: set[str] = set()
        self._passing: OrderedDict[str, frozenset[str]] = OrderedDict()
        """Value → its forms."""
        self._uses: Counter[str] = Counter()
        """Form → how many values have it."""
        # By their first and their last characters; longest first, so that a secret within another one
        # does not leave the rest of it behind. Lists are replaced, never changed: readers take no lock.
        self._by_head: dict[str, tuple[str, ...]] = {}
        self._by_tail: dict[str, tuple[str, ...]] = {}
        self._longest = 0

    def register(self, value: str, *, lasting: bool = True) -> None:
        """See `Redactor`."""
        if not isinstance(value, str) or len(value) < SHORTEST:
            return
        if value in self._lasting:
            return
        with self._lock:
            if value in self._passing:
                if not lasting:
                    self._passing.move_to_end(value)
                    return
                self._forget(self._passing.pop(value))
            forms = frozenset(_forms(value))
            for form in forms:
                self._add(form)
            if lasting:
                self._lasting.add(value)
                return
            self._passing[value] = forms
            if len(self._passing) > self._keep:
                self._forget(self._passing.popitem(last=False)[1])

    def redact(self, text: str) -> str:
        """See `Redactor`."""
        heads = self._by_head
        if not heads or len(text) < SHORTEST:
            return text
        pieces: list[str] = []
        done = self._cut_start(text)
        if done:
            pieces.append(MASK)
        position = done
        last = len(text) - SHORTEST
        while position <= last:
            candidates = heads.get(text[position : position + SHORTEST])
            end = _match(text, position, candidates) if candidates else 0
            if end:
                pieces += (text[done:position], MASK)
                done = position = end
            else:
                position += 1
        if not pieces:
            return text
        pieces.append(text[done:])
        return "".join(pieces)

    def _add(self, form: str) -> None:
        self._uses[form] += 1
        if self._uses[form] > 1:
            return
        self._longest = max(self._longest, len(form))
        for index, key in ((self._by_head, form[:SHORTEST]), (self._by_tail, form[-SHORTEST:])):
            index[key] = tuple(sorted((*index.get(key, ()), form), key=len, reverse=True))

    def _forget(self, forms: frozenset[str]) -> None:
        for form in forms:
            self._uses[form] -= 1
            if self._uses[form] > 0:
                continue
            del self._uses[form]
            for index, key in ((self._by_head, form[:SHORTEST]), (self._by_tail, form[-SHORTEST:])):
                left = tuple(other for other in index[key] if other != form)
                if left:
                    index[key] = left
                else:
                    del index[key]

    def _cut_start(self, text: str) -> int:
        """Where the rest of a secret ends that the text begins within; 0 where it does not."""
        tails = self._by_tail
        for end in range(min(len(text), self._longest), SHORTEST - 1, -1):
            for secret in tails.get(text[end - SHORTEST : end], ()):
                if end < len(secret) and secret.endswith(text[:end]):
                    return end
        return 0


def _match(text: str, start: int, candidates: tuple[str, ...]) -> int:
    """The end of the secret at ``start``, a piece that the end of the text cuts off included; else 0."""
    for secret in candidates:
        if text.startswith(secret, start):
            return start + len(secret)
    rest = text[start:]
    if any(len(secret) > len(rest) and secret.startswith(rest) for secret in candidates):
        return len(text)
    return 0


def _forms(value: str) -> Iterator[str]:
    for one in _parts(value):
        for form in (one, quote(one, safe=""), quote_plus(one), json.dumps(one)[1:-1]):
            if len(form) >= SHORTEST:
                yield form


def _parts(value: str) -> Iterator[str]:
    yield value
    scheme, blank, rest = value.partition(" ")
    if not blank or scheme.lower() not in _SCHEMES:
        return
    yield rest.strip()
    if scheme.lower() == "basic":
        try:
            yield base64.b64decode(rest, validate=True).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return
