"""Watching the work that goes on outside runs (API-4)."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Literal, Protocol

WorkKind = Literal["poll", "cancel", "deliver"]
"""What is done: asking a driver for a status, asking it to cancel, handing an event to a sink."""


class WorkObserver(Protocol):
    """Told of every poll, cancellation and delivery; a service that whoever watches may provide."""

    def observe(
        self, kind: WorkKind, name: str, attributes: Mapping[str, str]
    ) -> AbstractContextManager[Callable[[str], None]]:
        """Entered around the work of the driver or sink ``name``; what it yields takes how the work ended:
        ``ok``, ``pending`` or ``busy`` (a sink asks for patience), or one word for the kind of failure.
        Without a word it was cancelled.

        ``attributes`` name the task and the like, and carry no secret and no text of a server.
        """
        ...
