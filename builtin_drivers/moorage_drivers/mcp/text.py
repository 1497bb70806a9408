"""What others supplied, made harmless for text of ours (NOTE-5), and kept within bounds."""

import re

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+")
_STRUCTURE = str.maketrans({"<": "‹", ">": "›", "`": "ˋ", "[": "(", "]": ")"})


def neutral(text: str, limit: int = 500) -> str:
    """One line that can neither open nor close a block."""
    line = _CONTROL.sub(" ", storable(text)).translate(_STRUCTURE).strip()
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def storable(text: str) -> str:
    """Without NUL and lone surrogates, which no database takes (BOUND-4)."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\x00", "\ufffd")
