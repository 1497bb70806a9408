"""How the gateway listens (OPS-1)."""

import asyncio
import socket

import pytest

from moorage_api.server import address, listen


@pytest.mark.req("OPS-1")
async def test_what_is_answered_is_sent_at_once() -> None:
    """Without it every answer on a connection that is used again came 40 ms late."""
    accepted: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def connected(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        own = writer.get_extra_info("socket")
        accepted.set_result(own.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    with listen("127.0.0.1", 0) as sock:
        assert address(sock).startswith("http://127.0.0.1:")
        assert not sock.get_inheritable()
        async with await asyncio.start_server(connected, sock=sock):
            _, writer = await asyncio.open_connection(*sock.getsockname()[:2])
            async with asyncio.timeout(10):
                assert await accepted
            writer.close()
            await writer.wait_closed()
