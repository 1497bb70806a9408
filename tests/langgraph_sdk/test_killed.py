"""SIGKILL in the middle of a stream: the client resumes by itself and gets the truth (RUN-5, RUN-8)."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk import get_client

LIB = str(Path(__file__).parents[1] / "lib")


@contextmanager
def gateway(home: Path, port: int = 0) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A gateway process on SQLite under ``home``; yields it and its port once it listens."""
    process = subprocess.Popen(
        [sys.executable, "-m", "support.sql_gateway", str(home), str(port)],
        env={**os.environ, "PYTHONPATH": LIB},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        taken = int(process.stdout.readline())
        assert process.stdout.readline() == "ready\n"
        yield process, taken
    finally:
        process.kill()
        process.communicate()


def said(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


@pytest.mark.req("RUN-5", "RUN-8")
@pytest.mark.filterwarnings("ignore:Reconnecting without")
async def test_a_stream_that_outlives_its_gateway_ends_with_the_truth(tmp_path: Path) -> None:
    hang = json.dumps({"tool_calls": [{"name": "hang", "args": {}}]})
    with gateway(tmp_path) as (first, port):
        async with get_client(url=f"http://127.0.0.1:{port}/api", api_key=None) as client:
            await client.threads.create(thread_id="t")
            stream = client.runs.stream("t", "direct", input=said(hang), stream_mode="values")
            before = [await anext(stream), await anext(stream)]
            first.kill()
            await asyncio.to_thread(first.wait)
            with gateway(tmp_path, port):
                async with asyncio.timeout(60):
                    after = [part async for part in stream]
                run = (await client.runs.list("t"))[0]
                events = [part.event for part in before + after]
                assert events[0] == "metadata"
                assert "gap" in events
                assert events[-1] == "error"
                assert events.count("error") == 1
                assert "gone" in json.dumps(after[-1].data)
                assert run["status"] == "error"
                assert (await client.threads.get("t"))["status"] in ("idle", "error")
                assert await client.runs.wait("t", "direct", input=said("hello"))
