"""Just enough of MCP for servers that must be able to break it; standard library only, so they start fast."""

from collections.abc import Callable
from typing import Any

VERSION = "2025-06-18"
OBJECT = {"type": "object", "properties": {}}


def text(content: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": content}], **more}


def tool(name: Any, **fields: Any) -> dict[str, Any]:
    return {"name": name, "description": f"The tool {name}.", "inputSchema": OBJECT, **fields}


def reply(request: dict[str, Any], result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request.get("id"), "result": result}


def error(request: dict[str, Any], message: str, code: int = -32603) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request.get("id"), "error": {"code": code, "message": message}}


def answer(
    request: dict[str, Any], tools: list[Any], call: Callable[[str, dict[str, Any]], Any]
) -> dict[str, Any] | None:
    """The reply to one message; None for a notification."""
    if "id" not in request:
        return None
    match request.get("method"):
        case "initialize":
            return reply(
                request,
                {
                    "protocolVersion": VERSION,
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "hostile", "version": "0"},
                },
            )
        case "tools/list":
            return reply(request, {"tools": tools})
        case "tools/call":
            params = request["params"]
            return reply(request, call(params["name"], params.get("arguments") or {}))
        case "ping":
            return reply(request, {})
    return error(request, "no such method", -32601)
