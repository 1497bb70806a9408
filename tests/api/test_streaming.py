"""Answers that last, whose source fails in the middle."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from moorage_api.streaming import JSON_BEAT, SSE_BEAT, CutShort, alive, ending_in_error, late_json, sse


async def two_then_trouble() -> AsyncGenerator[bytes, None]:
    yield sse("values", 1)
    yield sse("values", 2)
    raise ValueError("the database is gone")


def kept(source: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    return alive(source, beat=SSE_BEAT, every_seconds=0.01, stopping=asyncio.Event())


@pytest.mark.req("API-1")
async def test_a_stream_whose_source_fails_tells_it_and_ends() -> None:
    def told(error: Exception) -> Any:
        return {"error": type(error).__name__}

    async with asyncio.timeout(5):
        pieces = [one async for one in kept(ending_in_error(two_then_trouble(), told)) if one != SSE_BEAT]
    assert pieces == [sse("values", 1), sse("values", 2), sse("error", {"error": "ValueError"})]


async def test_signs_of_life_do_not_outlive_the_source() -> None:
    async with asyncio.timeout(5):
        with pytest.raises(ValueError, match="gone"):
            async for _ in kept(two_then_trouble()):
                pass


async def never() -> None:
    await asyncio.Event().wait()


@pytest.mark.req("RUN-5")
async def test_a_document_that_the_stop_cuts_short_is_no_document() -> None:
    stopping = asyncio.Event()
    source = late_json(never(), lambda error: None)
    pieces = alive(source, beat=JSON_BEAT, every_seconds=0.01, stopping=stopping, whole=True)
    async with asyncio.timeout(5):
        assert await anext(pieces) == JSON_BEAT
        stopping.set()
        with pytest.raises(CutShort):
            async for _ in pieces:
                pass
