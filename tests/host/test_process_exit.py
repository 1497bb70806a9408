"""A plugin's own exit is told from that of the process (PLUG-7)."""

import functools
import signal
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

from moorage.accounts import Account
from moorage.process_exit import EXITS, SystemExitRaised, is_exit

pytestmark = pytest.mark.req("PLUG-7")


def plainly(number: int, frame: FrameType | None) -> None:
    sys.exit(7)


def by_way_of_others(number: int, frame: FrameType | None) -> None:
    plainly(number, frame)


class Stopping:
    def by_a_method(self, number: int, frame: FrameType | None) -> None:
        sys.exit(7)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        sys.exit(7)


HANDLERS: dict[str, Callable[[int, FrameType | None], Any]] = {
    "function": plainly,
    "function that calls another": by_way_of_others,
    "method": Stopping().by_a_method,
    "object": Stopping(),
    "partial": functools.partial(functools.partial(lambda code, number, frame: sys.exit(code)), 7),
}


@pytest.fixture
def installed(request: pytest.FixtureRequest) -> Iterator[None]:
    before = signal.signal(signal.SIGUSR1, HANDLERS[request.param])
    yield
    signal.signal(signal.SIGUSR1, before)


def a_plugins_work() -> None:
    signal.raise_signal(signal.SIGUSR1)
    for _ in range(1_000):
        pass  # the handler runs between two of its steps


@pytest.mark.parametrize("installed", HANDLERS, indirect=True)
@pytest.mark.usefixtures("installed")
def test_a_signal_handlers_exit_passes_whatever_kind_of_callable_it_is() -> None:
    with pytest.raises(SystemExit) as caught, Account().call():
        a_plugins_work()
    assert caught.value.code == 7
    assert is_exit(caught.value)


@pytest.mark.parametrize("installed", ["function"], indirect=True)
@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(("code", "told"), [(3, "exit(3)"), (None, "exit()"), ("so", "exit('so')")])
def test_a_plugins_own_exit_becomes_an_ordinary_error(code: Any, told: str) -> None:
    account = Account()
    with pytest.raises(SystemExitRaised) as caught, account.call():
        sys.exit(code)
    assert told in str(caught.value)
    assert account.calls == 1


@pytest.mark.parametrize("kind", [kind for kind in EXITS if kind is not SystemExit])
def test_other_exits_pass(kind: type[BaseException]) -> None:
    with pytest.raises(kind) as caught, Account().call():
        raise kind
    assert is_exit(caught.value)


def test_nothing_else_is_an_exit() -> None:
    assert not is_exit(ValueError())
    assert not is_exit(SystemExit())
