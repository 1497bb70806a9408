"""Did you mean: the nearest known name."""

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that ``name`` is probably a misspelling of, if any."""
    by_folded = {_fold(candidate): candidate for candidate in known}
    found = difflib.get_close_matches(_fold(name), by_folded, n=1, cutoff=0.7)
    return by_folded[found[0]] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?``, or nothing."""
    found = nearest(name, known)
    return f"; did you mean {found!r}?" if found else ""


def _fold(name: str) -> str:
    return name.lower().replace("-", "_")
