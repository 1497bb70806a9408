"""Server-sent events, as far as we must look into them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_END = re.compile(rb"(?:\r\n|\n|\r)(?:\r\n|\n|\r)")
_LINE = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class Event:
    """One event; ``raw`` is how it came, its end included."""

    raw: bytes
    kind: str
    data: bytes
    id: str


class EventParser:
    """Feeds on chunks and yields whole events. ``pending_bytes`` is what waits for its end."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    @property
    def pending_bytes(self) -> int:
        return len(self._buffer)

    def feed(self, chunk: bytes) -> Iterator[Event]:
        self._buffer += chunk
        while (end := _END.search(self._buffer)) is not None:
            raw = bytes(self._buffer[: end.end()])
            del self._buffer[: end.end()]
            yield _parse(raw)


def _parse(raw: bytes) -> Event:
    kind, event_id, data = "message", "", []
    for line in _LINE.split(raw):
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            data.append(value)
        elif name == b"event":
            kind = value.decode("utf-8", "replace")
        elif name == b"id":
            event_id = value.decode("utf-8", "replace")
    return Event(raw, kind, b"\n".join(data), event_id)
