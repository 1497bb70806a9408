"""Collects faults of one load, each with its place in the file."""

from moorage.config.document import Document, JsonPath
from moorage.contract import ConfigFault


class FaultCollector:
    """Faults of one server's entry, or of the file where ``server`` is None."""

    def __init__(self, document: Document, server: str | None = None) -> None:
        self._document = document
        self._server = server
        self.faults: list[ConfigFault] = []

    @property
    def root(self) -> JsonPath:
        return () if self._server is None else ("mcpServers", self._server)

    @property
    def fatal(self) -> ConfigFault | None:
        """The first fatal one."""
        return next((fault for fault in self.faults if fault.fatal), None)

    def error(self, path: JsonPath, message: str) -> None:
        """``path`` is relative to the server's entry."""
        self._add(path, message, fatal=True)

    def warn(self, path: JsonPath, message: str) -> None:
        self._add(path, message, fatal=False)

    def _add(self, path: JsonPath, message: str, *, fatal: bool) -> None:
        where = self._document.where((*self.root, *path)) or "the file"
        fault = ConfigFault(where=where, message=message, server=self._server, fatal=fatal)
        if fault not in self.faults:
            self.faults.append(fault)


def kind_of(value: object) -> str:
    """A JSON value's kind, for messages that must not quote it."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list():
            return "a list"
        case _:
            return "an object"
