"""How much of a lease each part of the work may take (TASK-6, TASK-12)."""

from dataclasses import dataclass

from moorage.settings import TaskSettings

HINT_CAP_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class LeasePlan:
    """The parts of one lease. What is left over is the time that a claim may wait in the queue."""

    lease_seconds: float
    call_seconds: float
    """A remote call's deadline."""
    margin_seconds: float
    """Kept back for writing the result."""
    compensation_seconds: float
    """Bounds what a failed submission may still cost its caller (TASK-4)."""

    @property
    def needed_seconds(self) -> float:
        """A call is not started with less than this left of its lease."""
        return self.call_seconds + self.margin_seconds


def lease_plan(settings: TaskSettings) -> LeasePlan:
    lease = settings.lease_seconds
    return LeasePlan(
        lease_seconds=lease,
        call_seconds=lease * 0.75,
        margin_seconds=lease * 0.1,
        compensation_seconds=min(5.0, lease * 0.1),
    )


def capped_hint(hint: float | None) -> float | None:
    """A remote's poll hint in seconds, at most a day (TASK-12)."""
    return None if hint is None else min(float(hint), HINT_CAP_SECONDS)
