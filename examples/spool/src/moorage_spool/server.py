"""``python -m moorage_spool.server [TOOL]``: an MCP server that advertises the tool and does nothing else."""

import json
import sys
from typing import Any


def answer(request: dict[str, Any], tool: str) -> dict[str, Any] | None:
    """The reply to one message; None for a notification."""
    if "id" not in request:
        return None
    schema = {"type": "object", "additionalProperties": True}
    results: dict[str, Any] = {
        "initialize": {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "spool", "version": "0.1.0"},
        },
        "tools/list": {
            "tools": [
                {"name": tool, "description": "Queues a job with these arguments.", "inputSchema": schema}
            ]
        },
        "ping": {},
    }
    method = request.get("method")
    if method in results:
        return {"jsonrpc": "2.0", "id": request["id"], "result": results[method]}
    return {"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "no such method"}}


def main() -> None:
    tool = sys.argv[1] if len(sys.argv) > 1 else "run"
    for line in sys.stdin:
        if (reply := answer(json.loads(line), tool)) is not None:
            print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
