"""Where a server's secrets go: what must stay for a masked secret to be kept (ADMIN-2).

Moving a server to another host, or to another program, with its secrets kept unseen would hand them to
whoever is there.
"""

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from moorage.config.document import JsonPath
from moorage.config.entries import transport_of
from moorage.config.placeholders import pieces

# Programs whose first operand is what they run; of others the whole command line counts.
_RUNNERS = frozenset({"npx", "uvx", "bunx", "node", "python", "python3"})
_BOOLEAN_OPTIONS = frozenset({"-y", "--yes", "-q", "--quiet", "-v", "--verbose", "--offline", "-u", "--"})


def server_destination(entry: Any) -> tuple[object, ...]:
    """What is compared of a server's entry as written."""
    if not isinstance(entry, Mapping):
        return ()
    if transport_of(entry) == "stdio":
        command, args = entry.get("command"), entry.get("args")
        program = _program(command, args) if isinstance(args, list) else args
        return ("stdio", command, program, entry.get("cwd"))
    return ("remote", origin_of(entry.get("url")))


def moved(before: Any, after: Any) -> bool:
    """Whether a server's secrets would go somewhere else."""
    old, new = server_destination(before), server_destination(after)
    if old == new:
        return False
    if old[:1] == new[:1] == ("remote",):
        return not _upgraded(old[1], new[1])
    return True


def block_moved(before: Any, after: Any, path: JsonPath) -> bool:
    """Whether the URL (or other destination) at this path of a section's block is another one."""
    old, new = origin_of(_at(before, path)), origin_of(_at(after, path))
    return old != new and not _upgraded(old, new)


def origin_of(url: Any) -> object:
    """Scheme, host and port of a URL as written; anything else as it is."""
    if not isinstance(url, str):
        return url
    # A placeholder may hold characters that end a host; it is one opaque label of it here.
    names: list[str] = []
    text = ""
    for piece in pieces(url):
        if piece.name is None:
            text += piece.text
        else:
            text += f"placeholder{len(names)}"
            names.append(piece.text)
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        return url
    if not host:
        return url
    place = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    used = tuple(name for index, name in enumerate(names) if f"placeholder{index}" in place)
    scheme = parts.scheme.lower()
    return (scheme, host, port or {"http": 80, "https": 443}.get(scheme), used)


def _upgraded(old: object, new: object) -> bool:
    """From http to https on the same host, both on their own port."""
    match old, new:
        case ("http", host, 80, used), ("https", other, 443, also):
            return host == other and used == also
        case _:
            return False


def _program(command: object, args: Sequence[Any]) -> Sequence[Any]:
    """The leading part of a command line that decides which program runs.

    It ends with the first operand that no option can have taken for its value.
    """
    if not isinstance(command, str) or PurePosixPath(command).name not in _RUNNERS:
        return args
    before = "--"
    for index, arg in enumerate(args):
        text = arg if isinstance(arg, str) else ""
        takes_value = before.startswith("-") and before not in _BOOLEAN_OPTIONS and "=" not in before
        if not text.startswith("-") and not takes_value:
            return args[: index + 1]
        before = text
    return args


def _at(value: Any, path: JsonPath) -> Any:
    for part in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(part) if isinstance(part, str) else None
    return value
