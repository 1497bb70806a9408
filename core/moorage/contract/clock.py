"""Time as a dependency, so that tests own it."""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """All times are aware and in UTC (TASK-6)."""

    def now(self) -> datetime:
        """The present time, aware, UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait; cancellation passes."""
        ...
