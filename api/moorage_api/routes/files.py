"""A thread's files, under the names that agents give them (API-5, STDIO-4)."""

import asyncio
from collections.abc import AsyncIterator
from email.utils import format_datetime
from typing import Annotated
from urllib.parse import quote

from litestar import get
from litestar.background_tasks import BackgroundTask
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import PathParameter
from litestar.response import Stream

from moorage.contract.files import OpenedFile, ThreadFiles
from moorage_api.problems import ApiProblem
from moorage_api.routes.documented import problems
from moorage_api.schemas.ids import ThreadId
from moorage_api.wiring import GatewayDep, PrincipalDep

CHUNK_BYTES = 262_144
FilePath = Annotated[
    str,
    PathParameter(
        max_length=4_096,
        description="A virtual path (`mnt/user-data/…`), or what follows `/mnt/user-data/` in one.",
    ),
]
CONTENT = {200: ResponseSpec(bytes, description="The file", media_type="*/*", generate_examples=False)}
# What a server wrote is its word: it is saved, and never runs as a page of this origin.
HARMLESS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Cache-Control": "private, no-store",
}


@get(
    "/api/threads/{thread_id:str}/files/{path:path}",
    summary="Download a file of a thread",
    operation_id="get_thread_file",
    responses=problems(404, 501) | CONTENT,
    tags=["threads"],
)
async def get_thread_file(
    gateway: GatewayDep, principal: PrincipalDep, thread_id: ThreadId, path: FilePath
) -> Stream:
    """What a virtual path names, streamed. A folder, a link that leads out of the thread's tree and a file of
    somebody else's do not exist here."""
    thread = await gateway.runs.threads.get(principal, thread_id)
    if gateway.context is None or not gateway.context.has(ThreadFiles):
        raise ApiProblem(501, "not-supported", "No installed plugin keeps files of threads.")
    files: ThreadFiles = gateway.context.service(ThreadFiles)
    opened = await files.open(principal.user_id, thread.thread_id, path)
    return Stream(
        _chunks(opened),
        media_type=opened.media_type,
        headers={
            **HARMLESS,
            "Content-Length": str(opened.size_bytes),
            "Last-Modified": format_datetime(opened.modified_at, usegmt=True),
            "Content-Disposition": f"attachment; filename*=UTF-8''{quote(opened.name, safe='')}",
        },
        # Also where the client is gone before the first piece.
        background=BackgroundTask(opened.stream.close),
    )


async def _chunks(opened: OpenedFile) -> AsyncIterator[bytes]:
    """As many bytes as were announced, also of a file that still grows; one that was cut ends too early,
    which breaks the connection, so that nobody takes it for whole."""
    left = opened.size_bytes
    try:
        while left:
            chunk = await asyncio.to_thread(opened.stream.read, min(left, CHUNK_BYTES))
            if not chunk:
                raise EOFError("the file became shorter while it was sent")
            left -= len(chunk)
            yield chunk
    finally:
        opened.stream.close()
