"""Exponential backoff with a cap and without a maximum number of attempts (TASK-8)."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

# 2**63 times anything that the settings allow is far past every cap.
_LARGEST_EXPONENT = 63


@dataclass(frozen=True, slots=True)
class Backoff:
    """``base_seconds`` after the first failure, doubling up to ``cap_seconds``.

    ``jitter`` (0 to 1) takes away up to that fraction at random, so that what failed together does not
    come back together.
    """

    base_seconds: float
    cap_seconds: float
    jitter: float = 0.0
    random: Callable[[], float] = field(default=random.random, repr=False)

    def delay(self, failures: int) -> float:
        """Seconds to wait after the n-th consecutive failure (1 for the first)."""
        exponent = min(max(failures, 1) - 1, _LARGEST_EXPONENT)
        seconds = min(self.base_seconds * 2.0**exponent, self.cap_seconds)
        return seconds * (1.0 - self.jitter * self.random())
