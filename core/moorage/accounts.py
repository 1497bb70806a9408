"""What is kept of each plugin's conduct at run time: its faults and the time spent in it (PLUG-4, PLUG-7)."""

import logging
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from moorage.process_exit import SystemExitRaised, is_exit

log = logging.getLogger(__name__)

KEPT_FAILURES = 20
_VARIES = re.compile(r"[0-9a-f]{8}[0-9a-f-]*|\d+(\.\d+)?")


@dataclass(frozen=True, slots=True)
class Failure:
    """A fault of a plugin's object: when it was seen last and first, and how often.

    ``text`` is of the last time, bounded and redacted.
    """

    at: datetime
    text: str
    first_at: datetime
    count: int = 1


class Account:
    """One plugin's account. May be written to from any thread.

    ``clean`` bounds and redacts each text. Texts that differ in numbers and ids only (a task, seconds, an
    address) are one fault; the `KEPT_FAILURES` that were seen last are kept.
    """

    def __init__(self, plugin: str = "", clean: Callable[[str], str] = str) -> None:
        self.plugin = plugin
        self._clean = clean
        self._failures: OrderedDict[str, Failure] = OrderedDict()
        self._calls = 0
        self._seconds = 0.0
        self._lock = threading.Lock()

    def told(self, text: str) -> None:
        """Keep what the plugin's object did wrong, and log it unless this very fault is on record."""
        if self.failed(text):
            log.warning("plugin %r: %s", self.plugin, self._clean(text))

    def failed(self, text: str) -> bool:
        """Keep what the plugin's object did wrong, where somebody else logs it; True where it is new."""
        text = self._clean(text)
        fault, now = _VARIES.sub("#", text), datetime.now(UTC)
        with self._lock:
            known = self._failures.pop(fault, None)
            self._failures[fault] = (
                replace(known, at=now, text=text, count=known.count + 1)
                if known is not None
                else Failure(now, text, first_at=now)
            )
            if len(self._failures) > KEPT_FAILURES:
                self._failures.popitem(last=False)
        return known is None

    def spent(self, seconds: float) -> None:
        """Count one call of the plugin's objects that took ``seconds`` of its own."""
        with self._lock:
            self._calls += 1
            self._seconds += max(seconds, 0.0)

    @contextmanager
    def call(self) -> Iterator[None]:
        """Around one call of the plugin's objects: it is counted, however it ends, and a ``sys.exit`` of the
        plugin's own comes out of it as `SystemExitRaised`.

        Inside the coroutine that makes the call: a task that ends in `SystemExit` raises it out of the event
        loop as well, whatever its owner does.
        """
        started = time.perf_counter()
        try:
            yield
        except SystemExit as error:
            if is_exit(error):
                raise
            raise SystemExitRaised(error.code) from error
        finally:
            self.spent(time.perf_counter() - started)

    @property
    def failures(self) -> tuple[Failure, ...]:
        """Each fault once, the one seen last at the end."""
        with self._lock:
            return tuple(self._failures.values())

    @property
    def calls(self) -> int:
        """How many calls were counted."""
        return self._calls

    @property
    def seconds(self) -> float:
        """The time spent in them: that of an interceptor without the inner call's, of anything else from
        call to answer, waiting included."""
        return self._seconds
