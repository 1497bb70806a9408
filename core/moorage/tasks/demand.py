"""How many tasks to claim ahead of the free places (TASK-21)."""

from moorage.contract.clock import Clock

_WINDOW_SECONDS = 0.25
_MEMORY_SECONDS = 1.0


class Demand:
    """Follows the rate at which visits end.

    A claim that waits in our queue is a claim that another replica cannot take, so the queue holds a
    quarter of a second's work: hundreds of tasks with a driver that answers at once, none ahead of the
    free places with one that takes seconds.
    """

    def __init__(self, clock: Clock, least: int, most: int) -> None:
        self._clock = clock
        self._least = least
        self._most = max(least, most)
        self._rate = 0.0
        self._counted = 0
        self._since = clock.monotonic()

    def ended(self, count: int) -> None:
        self._counted += count

    def wanted(self) -> int:
        """How many tasks to hold, under way and queued."""
        now = self._clock.monotonic()
        elapsed = now - self._since
        if elapsed >= 0.01:
            share = min(1.0, elapsed / _MEMORY_SECONDS)
            # The first claims would otherwise take seconds to find out how fast the driver is.
            rate = self._counted / elapsed
            self._rate = rate if rate > self._rate else self._rate + (rate - self._rate) * share
            self._counted, self._since = 0, now
        return max(self._least, min(self._most, int(self._rate * _WINDOW_SECONDS)))
