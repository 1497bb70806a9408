"""A server's process: started in a group of its own, and reaped with all its children (STDIO-5)."""

import asyncio
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import cast

STDERR_TAIL_BYTES = 8_192
_GROUP_CHECK_SECONDS = 0.02
_SETTLE_SECONDS = 0.2


class Child(asyncio.SubprocessProtocol):
    """One child process.

    ``on_output`` gets the bytes of its standard output, ``on_end`` is called once, when that output ends.
    Both are called from the event loop. Of its standard error a tail of `STDERR_TAIL_BYTES` is kept and
    the rest is thrown away, so that a chatty server never blocks.
    """

    def __init__(self, on_output: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        self._on_output = on_output
        self._on_end = on_end
        self._tail = bytearray()
        self._writable = asyncio.Event()
        self._writable.set()
        self._exited = asyncio.Event()
        self._transport: asyncio.SubprocessTransport | None = None
        self._output_ended = False

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str,
        on_output: Callable[[bytes], None],
        on_end: Callable[[], None],
    ) -> "Child":
        """Raises `OSError` where the command cannot be started."""
        child = cls(on_output, on_end)
        loop = asyncio.get_running_loop()
        await loop.subprocess_exec(lambda: child, *command, env=dict(env), cwd=cwd, start_new_session=True)
        return child

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 1:
            self._on_output(data)
        else:
            self._tail += data
            del self._tail[:-STDERR_TAIL_BYTES]

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 1:
            self._end()
        elif fd == 0:
            self._writable.set()

    def process_exited(self) -> None:
        self._exited.set()
        # A grandchild may hold the pipe open, and nothing would ever end it.
        asyncio.get_running_loop().call_later(_SETTLE_SECONDS, self._end)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def _end(self) -> None:
        if not self._output_ended:
            self._output_ended = True
            self._on_end()

    @property
    def pid(self) -> int:
        assert self._transport is not None
        return self._transport.get_pid()

    @property
    def returncode(self) -> int | None:
        return self._transport.get_returncode() if self._transport else None

    def stderr_tail(self) -> str:
        """The last of its standard error, whatever its encoding."""
        return bytes(self._tail).decode("utf-8", "replace").strip()

    async def settle(self) -> None:
        """A process that closed its output is mostly about to end; wait a moment for its status."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_SETTLE_SECONDS):
                await self._exited.wait()

    async def write(self, data: bytes) -> None:
        """Raises `BrokenPipeError` where the child no longer reads."""
        assert self._transport is not None
        pipe = cast("asyncio.WriteTransport | None", self._transport.get_pipe_transport(0))
        if pipe is None or pipe.is_closing():
            raise BrokenPipeError("the process no longer reads its input")
        pipe.write(data)
        await self._writable.wait()

    async def close(self, grace_seconds: float) -> None:
        """End the whole process group: by closing its input, SIGTERM, SIGKILL, each after the grace."""
        assert self._transport is not None
        pid = self.pid
        if (pipe := self._transport.get_pipe_transport(0)) is not None:
            pipe.close()
        try:
            await self._gone(pid, grace_seconds, leader_only=True)
            for number in (signal.SIGTERM, signal.SIGKILL):
                if not _signal_group(pid, number) and self._exited.is_set():
                    break
                if await self._gone(pid, grace_seconds):
                    break
        finally:
            # Also on a cancellation halfway: what is left dies now, and no pipe leaks.
            _signal_group(pid, signal.SIGKILL)
            self._transport.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(grace_seconds):
                await self._exited.wait()

    async def _gone(self, pid: int, seconds: float, *, leader_only: bool = False) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._exited.wait()
                while not leader_only and _signal_group(pid, 0):  # noqa: ASYNC110 - no event tells
                    await asyncio.sleep(_GROUP_CHECK_SECONDS)
        except TimeoutError:
            return False
        return True


def _signal_group(pid: int, number: int) -> bool:
    """False where the group is gone."""
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
