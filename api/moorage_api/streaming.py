"""Answers that last: server-sent events, and JSON that is not ready yet."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

from moorage_api.encoding import encode

SSE_MEDIA_TYPE = "text/event-stream"
SSE_BEAT = b": alive\n\n"
JSON_BEAT = b"\n"
"""White space in front of a JSON document means nothing, and keeps a connection alive."""
_AHEAD = 64
"""Pieces that may wait for a slow reader before the source has to wait, too."""


def sse(event: str, data: Any, event_id: str | None = None) -> bytes:
    """One event. Encoded JSON holds no line break, and names and ids are ours."""
    head = f"id: {event_id}\n" if event_id is not None else ""
    return f"{head}event: {event}\ndata: ".encode() + encode(data) + b"\n\n"


class CutShort(Exception):
    """The gateway stops in the middle of an answer that counts as a whole only. What raises it breaks the
    connection, so that no client takes the answer for complete."""


async def alive(
    source: AsyncGenerator[bytes, None],
    *,
    beat: bytes,
    every_seconds: float,
    stopping: asyncio.Event,
    whole: bool = False,
) -> AsyncGenerator[bytes, None]:
    """The source's pieces, with a sign of life in every silence; ends early when the gateway stops, or
    raises `CutShort` where the answer is worth nothing unless it is ``whole``.

    The source runs in one task of its own, which is over when this is over, however it ends.
    """
    pieces: asyncio.Queue[bytes | None] = asyncio.Queue(_AHEAD)
    pump = asyncio.create_task(_pump(source, pieces))
    stop = asyncio.create_task(stopping.wait())
    taking: asyncio.Task[bytes | None] | None = None
    try:
        while True:
            taking = taking or asyncio.create_task(pieces.get())
            done, _ = await asyncio.wait(
                {taking, stop}, timeout=every_seconds, return_when=asyncio.FIRST_COMPLETED
            )
            if taking in done:
                piece = taking.result()
                taking = None
                if piece is None:
                    await pump
                    return
                yield piece
            elif stop in done:
                if whole:
                    raise CutShort
                return
            else:
                yield beat
    finally:
        tasks = [task for task in (pump, stop, taking) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _pump(source: AsyncGenerator[bytes, None], pieces: "asyncio.Queue[bytes | None]") -> None:
    try:
        async for piece in source:
            await pieces.put(piece)
    except Exception:
        await pieces.put(None)
        raise
    finally:
        await source.aclose()
    await pieces.put(None)


async def ending_in_error(
    source: AsyncGenerator[bytes, None], failed: Callable[[Exception], Any]
) -> AsyncGenerator[bytes, None]:
    """Server-sent events that tell, as ``error``, what went wrong after the status was sent."""
    async with aclosing(source):
        try:
            async for piece in source:
                yield piece
        except Exception as error:
            yield sse("error", failed(error))


async def late_json(value: Awaitable[Any], failed: Callable[[Exception], Any]) -> AsyncGenerator[bytes, None]:
    """A JSON document whose value is awaited; an error becomes a document, too, since the status is sent."""
    try:
        document = encode(await value)
    except Exception as error:
        document = encode(failed(error))
    yield document


Pieces = AsyncIterator[bytes]
