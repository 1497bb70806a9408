"""A store on each database whose time the test owns."""

import pytest
from support.clock import FakeClock
from support.stored_tasks import Tasks

from moorage.contract import Clock, Store


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store_clock(clock: FakeClock) -> Clock:
    return clock


@pytest.fixture
def tasks(store: Store, clock: FakeClock) -> Tasks:
    return Tasks(store.tasks, clock)
