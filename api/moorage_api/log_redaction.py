"""Secrets that the gateway knows stay out of its log, whoever logs (CRED-9)."""

import logging
from collections.abc import Callable

from moorage.contract.gateway import GatewayContext
from moorage.contract.redaction import Redactor


class RedactingFormatter(logging.Formatter):
    """Formats like another formatter and redacts the whole text, tracebacks included."""

    def __init__(self, inner: logging.Formatter, redact: Callable[[str], str]) -> None:
        super().__init__()
        self._inner = inner
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        return self._redact(self._inner.format(record))


def redact_log(context: GatewayContext | None) -> None:
    """Redact what the root logger's handlers write from now on, where the gateway can redact."""
    if context is None or not context.has(Redactor):
        return
    redactor = context.service(Redactor)
    for handler in logging.getLogger().handlers:
        inner = handler.formatter or logging.Formatter()
        if not isinstance(inner, RedactingFormatter):
            handler.setFormatter(RedactingFormatter(inner, redactor.redact))
