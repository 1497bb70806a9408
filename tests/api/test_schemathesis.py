"""Schemathesis against the whole API: no answer that the OpenAPI document does not describe (API-1).

On both databases: they refuse different values.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.http import serving
from support.routes import operations
from support.sql_gateway import SqlGateway

from moorage.runs import execution, turns
from moorage_api.app import create_app
from moorage_api.routes import thread_events
from moorage_api.routes.absent import TAG as ABSENT

# Statuses, media types and bodies as documented. 500 is documented nowhere, so none may occur; 501 and 503
# are where the document says so.
CHECKS = "status_code_conformance,content_type_conformance,response_schema_conformance"


@pytest.fixture
def _streams_that_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Schemathesis waits for the end of an answer; a thread's event stream has none."""
    whole = thread_events._pieces

    async def for_a_moment(events: Any) -> AsyncGenerator[bytes, None]:
        async with aclosing(whole(events)) as pieces:
            try:
                async with asyncio.timeout(0.05):
                    async for piece in pieces:
                        yield piece
            except TimeoutError:
                return

    monkeypatch.setattr(thread_events, "_pieces", for_a_moment)


@pytest.fixture
def _runs_that_begin_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is to begin in some days would hold up all that comes after it in its thread."""
    for module in (execution, turns):
        monkeypatch.setattr(module, "after_seconds", lambda run: 0.0)


@pytest.mark.req("API-1", "RUN-5")
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("_streams_that_end", "_runs_that_begin_at_once")
async def test_every_answer_is_documented(tmp_path: Path, store_url: str) -> None:
    gateway = SqlGateway(tmp_path, store_url)
    async with serving(create_app(gateway.open)) as url:
        key = await gateway.issue("root", "admin", "user")
        async with httpx.AsyncClient(base_url=url, headers={"X-Api-Key": key}) as http:
            for thread in ("t1", "t2"):
                body = {"assistant_id": "direct", "if_not_exists": "create"}
                (await http.post(f"/api/threads/{thread}/runs/wait", json=body)).raise_for_status()
            present = [one for one in await operations(http) if one.definition["tags"] != [ABSENT]]
        command = [
            *(sys.executable, "-m", "schemathesis.cli", "run", f"{url}/schema/openapi.json"),
            *("--header", f"X-Api-Key: {key}", "--exclude-tag", ABSENT, "--checks", CHECKS),
            *("--max-examples", "10", "--seed", "7", "--no-color", "--warnings", "off"),
            *("--phases", "examples,coverage,fuzzing", "--generation-database", "none"),
        ]
        process = await asyncio.create_subprocess_exec(
            *command, cwd=tmp_path, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()[-8000:]
    assert f"Tested: {len(present)}\n" in output.decode(), "an operation was left out"
