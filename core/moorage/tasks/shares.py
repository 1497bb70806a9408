"""No server takes all places: calls that hang at one must not stop the polls of the others (TASK-10)."""

import itertools

from moorage.contract.clock import Clock

_SLOW_AFTER_SECONDS = 1.0


class ServerShares:
    """Counts the calls under way to each server.

    A server may have any number of quick calls, slow ones in half of the places, and, once a call to it
    has ended without an answer, a quarter of them until it answers again.
    """

    def __init__(self, clock: Clock, places: int) -> None:
        self._clock = clock
        self._slow_limit = max(1, places // 2)
        self._silent_limit = max(1, places // 4)
        self._under_way: dict[str, dict[int, float]] = {}
        self._silent: set[str] = set()
        self._numbers = itertools.count()

    def admits(self, server: str) -> bool:
        calls = self._under_way.get(server)
        if not calls:
            return True
        if server in self._silent:
            return len(calls) < self._silent_limit
        if len(calls) < self._slow_limit:
            return True
        # Starts are in order: this many slow ones there are, if the one at that place is slow.
        decisive = next(itertools.islice(calls.values(), self._slow_limit - 1, None))
        return self._clock.monotonic() - decisive < _SLOW_AFTER_SECONDS

    def started(self, server: str) -> int:
        """Returns what `ended` wants back."""
        number = next(self._numbers)
        self._under_way.setdefault(server, {})[number] = self._clock.monotonic()
        return number

    def ended(self, server: str, number: int, *, answered: bool) -> None:
        """Only the first word counts: a call that was given up may still end."""
        calls = self._under_way.get(server, {})
        if calls.pop(number, None) is None:
            return
        if not calls:
            del self._under_way[server]
        if answered:
            self._silent.discard(server)
        else:
            self._silent.add(server)
