"""Deletes finished tasks once they are old enough (``tasks.retention_days``)."""

import logging
from datetime import timedelta

from moorage.contract.clock import Clock
from moorage.contract.stores import TaskRepository

_log = logging.getLogger(__name__)

_BATCH = 500
_PERIOD_SECONDS = 3_600.0
_BETWEEN_BATCHES_SECONDS = 0.2


class Retention:
    """Turns for `steadfast`: one small batch at a time, so that it never holds up the polls' writes."""

    def __init__(self, repository: TaskRepository, clock: Clock, days: float) -> None:
        self._repository = repository
        self._clock = clock
        self._age = timedelta(days=days)

    async def turn(self) -> None:
        deleted = await self._repository.purge(finished_before=self._clock.now() - self._age, limit=_BATCH)
        if deleted:
            _log.info("%d finished tasks were deleted after their retention", deleted)
        await self._clock.sleep(_BETWEEN_BATCHES_SECONDS if deleted == _BATCH else _PERIOD_SECONDS)
