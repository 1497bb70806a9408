"""Whose turn it is in a thread, among the runs that this process holds."""

from bisect import insort
from datetime import datetime, timedelta

from moorage.contract.stores import RunRecord
from moorage.runs.records import after_seconds

Order = tuple[datetime, str]


def order(run: RunRecord) -> Order:
    """The order in which a thread's runs take their turn: when they may begin, then by id."""
    return run.created_at + timedelta(seconds=after_seconds(run)), run.run_id


class Turns:
    """A queue for each thread. Only who is first in it needs to look at what other processes do: a thousand
    runs that wait in one thread cost no more than one."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[Order]] = {}
        self._begun: dict[str, set[str]] = {}

    def enter(self, run: RunRecord) -> None:
        """It waits from now on."""
        insort(self._waiting.setdefault(run.thread_id, []), order(run))

    def begin(self, run: RunRecord) -> None:
        """It executes from now on."""
        self._stop_waiting(run)
        self._begun.setdefault(run.thread_id, set()).add(run.run_id)

    def leave(self, run: RunRecord) -> None:
        """It is over, whether it began or not."""
        self._stop_waiting(run)
        begun = self._begun.get(run.thread_id, set())
        begun.discard(run.run_id)
        if not begun:
            self._begun.pop(run.thread_id, None)

    def is_first(self, run: RunRecord) -> bool:
        """Whether none executes here, or still winds down, and none here comes before it."""
        if self._begun.get(run.thread_id):
            return False
        waiting = self._waiting.get(run.thread_id)
        return not waiting or waiting[0] >= order(run)

    def _stop_waiting(self, run: RunRecord) -> None:
        waiting = self._waiting.get(run.thread_id, [])
        if (mine := order(run)) in waiting:
            waiting.remove(mine)
        if not waiting:
            self._waiting.pop(run.thread_id, None)
