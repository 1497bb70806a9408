"""The kit's fake clock, under the name that the tests know it by."""

from moorage.testing.clock import START, FakeClock, eventually

__all__ = ["START", "FakeClock", "eventually"]
