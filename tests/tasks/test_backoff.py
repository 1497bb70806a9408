"""Backoff: exponential, capped, endless (TASK-8)."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.tasks.backoff import Backoff


@pytest.mark.req("TASK-8")
def test_it_doubles_up_to_the_cap() -> None:
    backoff = Backoff(base_seconds=5, cap_seconds=60)
    assert [backoff.delay(n) for n in range(1, 7)] == [5, 10, 20, 40, 60, 60]


@pytest.mark.req("TASK-8")
@given(st.integers(min_value=0), st.floats(0.01, 86_400), st.floats(0.01, 86_400))
def test_any_number_of_failures_has_a_delay_within_the_cap(failures: int, base: float, cap: float) -> None:
    delay = Backoff(base, cap, jitter=0.5).delay(failures)
    assert 0 < delay <= cap
    assert math.isfinite(delay)


def test_jitter_only_ever_shortens() -> None:
    assert Backoff(10, 60, jitter=0.5, random=lambda: 1.0).delay(1) == 5
    assert Backoff(10, 60, jitter=0.5, random=lambda: 0.0).delay(1) == 10
