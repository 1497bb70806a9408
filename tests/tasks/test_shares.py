"""How many calls one server may have under way."""

import pytest
from support.clock import FakeClock

from moorage.tasks.shares import ServerShares


@pytest.mark.req("TASK-10")
def test_quick_calls_are_unlimited_slow_ones_take_half_and_silent_servers_a_quarter(clock: FakeClock) -> None:
    shares = ServerShares(clock, places=8)
    calls = [shares.started("a") for _ in range(7)]
    assert shares.admits("a"), "they have only just begun"
    clock.move(2)
    assert not shares.admits("a")
    assert shares.admits("b")

    for call in calls[:4]:
        shares.ended("a", call, answered=True)
    assert shares.admits("a")

    shares.ended("a", calls[4], answered=False)
    assert not shares.admits("a"), "two are under way, a quarter of eight"
    shares.ended("a", calls[5], answered=True)
    assert shares.admits("a")


@pytest.mark.req("TASK-10")
def test_a_call_that_ends_after_it_was_given_up_is_counted_once(clock: FakeClock) -> None:
    shares = ServerShares(clock, places=4)
    first, second = shares.started("a"), shares.started("a")
    shares.ended("a", first, answered=False)
    shares.ended("a", first, answered=True)
    assert not shares.admits("a"), "still silent, with one call under way"
    shares.ended("a", second, answered=True)
    assert shares.admits("a")
