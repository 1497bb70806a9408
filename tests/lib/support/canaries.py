"""A secret for every place that can hold one, and the search for them in whatever came out (CRED-9)."""

import base64
import json
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

PLACES = (
    "static-header", "child-env", "child-argument", "url-password", "url-query", "client-secret",
    "refresh-token", "extra-parameter", "issued-access", "issued-refresh", "per-user", "request",
    "nested", "unknown-key", "webhook-key", "admin-key", "database-password", "placeholder",
    "submitted", "metadata-key",
)  # fmt: skip


def _new(place: str) -> str:
    if place == "webhook-key":
        return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()
    return f"cnry{secrets.token_hex(12)}"


@dataclass
class Canaries:
    """One secret a place; what is searched is named, so that a hit says where it was."""

    values: Mapping[str, str] = field(default_factory=lambda: {place: _new(place) for place in PLACES})

    def __getitem__(self, place: str) -> str:
        return self.values[place]

    def hits(self, outputs: Iterable[tuple[str, str | bytes]]) -> list[str]:
        """``place in output (context)`` for every one that is found, in any of its usual spellings."""
        found = []
        for name, content in outputs:
            text = content.decode("latin-1") if isinstance(content, bytes) else content
            for place, value in self.values.items():
                for spelling in spellings(value):
                    if (at := text.find(spelling)) >= 0:
                        around = re.sub(r"\s+", " ", text[max(0, at - 200) : at + 60])
                        found.append(f"{place} in {name}: …{around}…")
                        break
        return found


def spellings(value: str) -> set[str]:
    """As it is, as JSON and a URL write it, and in base64 at each of the three places it can begin."""
    shapes = {value, json.dumps(value)[1:-1], quote(value, safe="")}
    raw = value.encode()
    for skipped in range(3):
        cut = base64.b64encode(b"\0" * skipped + raw)[4 if skipped else 0 :]
        shapes.add(cut[: len(cut) // 4 * 4 - 4].decode())
    return shapes


def files_below(folder: Path, *, but: Iterable[Path]) -> Iterable[tuple[str, bytes]]:
    """Every file with its bytes: database pages, write-ahead logs, workspaces."""
    left_out = {path.resolve() for path in but}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.resolve() not in left_out:
            yield str(path.relative_to(folder)), path.read_bytes()
