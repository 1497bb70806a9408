"""How the suites are built: a check is an async method that names its requirement and its rule (DX-2).

Checks run without any plugin of pytest, each in an event loop and a thread of its own, so that an object
under test that blocks the loop or swallows its cancellation costs one check and not the whole run.
"""

import asyncio
import functools
import threading
import traceback
import unittest
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

CHECK_SECONDS = 12.0
"""What one check may take in real time, all its calls together."""
_ABANDON_AFTER_SECONDS = CHECK_SECONDS + 4.0

T = TypeVar("T")


class ConformanceFailure(AssertionError):
    """The object under test falls short of the contract. ``requirements`` are the ids of the
    specification; the text says which rule, and what happened instead."""

    def __init__(self, requirements: Sequence[str], rule: str, what: str) -> None:
        super().__init__(f"{', '.join(requirements)}: {rule}\n  but {what}")
        self.requirements = tuple(requirements)
        self.rule = rule
        self.what = what


class Shortfall(Exception):
    """Raised within a check: what happened instead of what the rule says, after the word "but"."""


class NotApplicable(unittest.SkipTest):
    """A check does not concern this object; pytest shows it as skipped, with the reason."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check came to, where a suite is run by `run_suite`. ``message`` is empty where it passed."""

    check: str
    requirements: tuple[str, ...]
    state: Literal["passed", "failed", "skipped"]
    message: str = ""


class Suite:
    """Base of all suites."""

    def _bench(self) -> AbstractAsyncContextManager[Any]:
        raise NotImplementedError


Check = Callable[[Any, Any], Awaitable[None]]


def check(*requirements: str, rule: str) -> Callable[[Check], Callable[[Any], None]]:
    """Make ``async def test_x(self, bench)`` of a `Suite` a test that pytest collects as it is."""

    def decorate(function: Check) -> Callable[[Any], None]:
        @functools.wraps(function)
        def test(self: Any) -> None:
            try:
                _in_a_thread(lambda: _driven(self, function))
            except NotApplicable:
                raise
            except Shortfall as shortfall:
                raise ConformanceFailure(requirements, rule, str(shortfall)) from shortfall.__cause__
            except BaseException as raised:
                what = f"the check ended with {_described(raised)}"
                raise ConformanceFailure(requirements, rule, what) from raised

        # pytest would take the arguments of what is wrapped for fixtures.
        del test.__wrapped__
        test.requirements = requirements  # type: ignore[attr-defined]
        return test

    return decorate


def run_suite(suite: type[Suite], *, only: Collection[str] | None = None) -> list[Finding]:
    """Run the checks of a suite without pytest, all of them or ``only`` these, as they are defined."""
    findings = []
    for name in check_names(suite):
        if only is not None and name not in only:
            continue
        test = getattr(suite(), name)
        requirements: tuple[str, ...] = getattr(test, "requirements", ())
        try:
            test()
        except unittest.SkipTest as skipped:
            findings.append(Finding(name, requirements, "skipped", str(skipped)))
        except AssertionError as failed:
            findings.append(Finding(name, requirements, "failed", str(failed)))
        else:
            findings.append(Finding(name, requirements, "passed"))
    return findings


def check_names(suite: type[Suite]) -> list[str]:
    """The names of a suite's checks, as they are defined, without those that were switched off."""
    names: dict[str, None] = {}
    for kind in reversed(suite.__mro__):
        names |= {name: None for name in vars(kind) if name.startswith("test_")}
    return [name for name in names if callable(getattr(suite, name, None))]


async def within(seconds: float, call: Awaitable[T], what: str) -> T:
    """The call's result; a `Shortfall` where it takes longer in real time."""
    work = asyncio.ensure_future(call)
    done, _ = await asyncio.wait({work}, timeout=seconds)
    if not done:
        work.cancel()
        await asyncio.wait({work}, timeout=1.0)
        raise Shortfall(f"{what} did not end within {seconds:g} seconds")
    return work.result()


async def outcome(seconds: float, call: Awaitable[Any], what: str) -> Any:
    """What the call returned, or the exception that it raised."""
    try:
        return await within(seconds, call, what)
    except Shortfall:
        raise
    except asyncio.CancelledError as cancelled:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return cancelled
    except BaseException as raised:
        return raised


def told(value: object) -> str:
    """A value or an exception as a message shows it."""
    if isinstance(value, BaseException):
        return f"{type(value).__name__}: {value}"[:300]
    return repr(value)[:300]


async def _driven(suite: Any, function: Check) -> None:
    async with suite._bench() as bench:
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                await function(suite, bench)
        except TimeoutError as late:
            raise Shortfall(f"the check took more than {CHECK_SECONDS:g} seconds") from late


def _in_a_thread(work: Callable[[], Any]) -> None:
    ended: list[BaseException | None] = []

    def run() -> None:
        try:
            asyncio.run(work())
        except BaseException as raised:
            ended.append(raised)
        else:
            ended.append(None)

    thread = threading.Thread(target=run, name="moorage-check", daemon=True)
    thread.start()
    thread.join(_ABANDON_AFTER_SECONDS)
    if not ended:
        raise Shortfall("it blocks the event loop, or swallows its cancellation and goes on for ever")
    if (raised := ended[0]) is not None:
        raise raised


def _described(raised: BaseException) -> str:
    frames = traceback.extract_tb(raised.__traceback__)
    place = f" ({frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno})" if frames else ""
    return told(raised) + place
