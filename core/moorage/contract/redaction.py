"""Redaction of what quotes a server (CRED-9)."""

from typing import Protocol


class Redactor(Protocol):
    """Knows the gateway's secrets and takes them out of texts; a service of the gateway.

    Safe to use from several threads.
    """

    def register(self, value: str, *, lasting: bool = True) -> None:
        """Make a secret known. Values under 8 characters are ignored: too much else would match.

        ``lasting`` is false for what belongs to one request; of those only the newest are kept.
        """
        ...

    def redact(self, text: str) -> str:
        """``text`` with every known secret replaced by ``***``. Redact before you cut a text."""
        ...
