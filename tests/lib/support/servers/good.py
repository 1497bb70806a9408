"""A well-behaved MCP server on the official SDK: stdio, or ``--http`` (prints its URL), ``--stateless``."""

import argparse
import asyncio
import os
import socket
import uuid
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server.fastmcp import FastMCP, Image
from mcp.types import CallToolResult, TextContent


def build(*, stateless: bool, json_response: bool) -> FastMCP:
    server = FastMCP("good", stateless_http=stateless, json_response=json_response, log_level="WARNING")
    notes: dict[str, str] = {}
    jobs: dict[str, dict[str, Any]] = {}

    @server.tool()
    def echo(text: str) -> str:
        """Say it back."""
        return text

    @server.tool()
    def add(a: int, b: int) -> dict[str, int]:
        """Add two numbers."""
        return {"sum": a + b}

    @server.tool()
    def remember(key: str, value: str) -> str:
        """Keep a value in this process."""
        notes[key] = value
        return "kept"

    @server.tool()
    def recall(key: str) -> str:
        """A kept value."""
        return notes.get(key, "(nothing)")

    @server.tool()
    def about() -> dict[str, Any]:
        """The process itself."""
        return {"pid": os.getpid(), "cwd": str(Path.cwd()), "env": dict(os.environ)}

    @server.tool()
    async def wait(seconds: float) -> str:
        """Take some time."""
        await asyncio.sleep(seconds)
        return "waited"

    @server.tool()
    def picture() -> Image:
        """A tiny picture."""
        return Image(data=b"\x89PNG\r\n\x1a\n", format="png")

    @server.tool()
    def refuse() -> CallToolResult:
        """Answer with an error that has a structured part."""
        text = TextContent(type="text", text="not today")
        return CallToolResult(content=[text], structuredContent={"why": "tired"}, isError=True)

    @server.tool()
    def job_submit(label: str, polls: int = 2) -> dict[str, Any]:
        """Start a job that takes some polls."""
        task_id = uuid.uuid4().hex
        jobs[task_id] = {"left": polls, "label": label, "status": "running"}
        return {"task_id": task_id, "status": "running"}

    @server.tool()
    def job_status(task_id: str) -> dict[str, Any]:
        """How a job is doing."""
        job = jobs.get(task_id)
        if job is None:
            return {"task_id": task_id, "status": "failed", "error_code": "task_not_found"}
        if job["status"] == "running":
            job["left"] -= 1
            if job["left"] <= 0:
                job["status"] = "completed"
        reply = {"task_id": task_id, "status": job["status"], "poll_after_seconds": 0.5}
        return reply | ({"result": {"label": job["label"]}} if job["status"] == "completed" else {})

    @server.tool()
    def job_cancel(task_id: str) -> dict[str, Any]:
        """Stop a job."""
        jobs[task_id]["status"] = "cancelled"
        return {"task_id": task_id, "status": "cancelled"}

    @server.tool()
    def job_respond(task_id: str, response: dict[str, Any]) -> dict[str, Any]:
        """Answer a job."""
        jobs[task_id] |= {"label": response["label"], "left": 1}
        return {"task_id": task_id, "status": "running"}

    return server


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--http", action="store_true")
    parser.add_argument("--sse", action="store_true")
    parser.add_argument("--stateless", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    server = build(stateless=options.stateless, json_response=options.json)
    if not options.http and not options.sse:
        server.run("stdio")
        return
    app = server.sse_app() if options.sse else server.streamable_http_app()
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()  # so that nobody is refused before uvicorn is ready
        print(f"http://127.0.0.1:{listener.getsockname()[1]}/{'sse' if options.sse else 'mcp'}", flush=True)
        config = uvicorn.Config(app, log_level="warning", lifespan="on", timeout_graceful_shutdown=1)
        uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
