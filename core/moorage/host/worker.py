"""Runs a plugin's code apart, so that it can be waited for and given up (PLUG-4, C69).

In a thread of its own, since a signal is delivered to the main thread alone: a `KeyboardInterrupt` that
comes out of the worker was raised by the plugin, and one that reaches the waiting caller is Ctrl-C.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class GivenUp(Exception):
    """The work did not end in time; its thread has been abandoned."""


@dataclass(slots=True)
class _Job(Generic[T]):
    work: Callable[[], T]
    done: threading.Event
    result: T | None = None
    error: BaseException | None = None


class Worker:
    """One daemon thread, replaced when it has been abandoned. Use it as a context manager."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[_Job[Any] | None] | None = None

    def run(self, work: Callable[[], T], *, timeout_seconds: float) -> T:
        """What ``work`` returns; raises what it raises, or `GivenUp`."""
        if self._jobs is None:
            self._jobs = SimpleQueue()
            threading.Thread(target=_serve, args=(self._jobs,), name="moorage-plugins", daemon=True).start()
        job = _Job(work, threading.Event())
        self._jobs.put(job)
        if not job.done.wait(timeout_seconds):
            self._close()
            raise GivenUp
        if job.error is not None:
            raise job.error
        return job.result  # type: ignore[return-value]

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _close(self) -> None:
        if self._jobs is not None:
            self._jobs.put(None)
            self._jobs = None


def _serve(jobs: "SimpleQueue[_Job[Any] | None]") -> None:
    while (job := jobs.get()) is not None:
        try:
            job.result = job.work()
        except BaseException as error:
            job.error = error
        job.done.set()
