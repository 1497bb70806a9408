"""A background loop that survives what its turns raise."""

import logging
from collections.abc import Awaitable, Callable
from typing import NoReturn

from moorage.contract.clock import Clock
from moorage.tasks.backoff import Backoff
from moorage.tasks.text import describe

_log = logging.getLogger(__name__)


async def steadfast(turn: Callable[[], Awaitable[None]], clock: Clock, pause: Backoff, what: str) -> NoReturn:
    """Take one turn after the other until cancelled; failures in a row are logged once and slow it down."""
    failures = 0
    while True:
        try:
            await turn()
            if failures:
                _log.info("%s works again", what)
            failures = 0
        except Exception as exc:
            failures += 1
            level = logging.WARNING if failures == 1 else logging.DEBUG
            _log.log(level, "%s is in trouble and tries again: %s", what, describe(exc))
            await clock.sleep(pause.delay(failures))
