"""Every operation of the API, out of its own OpenAPI document, so that none can be forgotten."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx

METHODS = ("get", "post", "put", "patch", "delete")


@dataclass(frozen=True)
class Operation:
    """One method of one path. ``path`` has ``{placeholders}``."""

    method: str
    path: str
    definition: Any

    @property
    def name(self) -> str:
        return str(self.definition["operationId"])

    def at(self, **values: str) -> str:
        """The path with the placeholders filled in; those not given get an id of nobody's."""
        path = self.path
        for parameter in self.definition.get("parameters", ()):
            if parameter["in"] == "path":
                path = path.replace(f"{{{parameter['name']}}}", values.get(parameter["name"], "nobodys"))
        return path

    @property
    def has_body(self) -> bool:
        return "requestBody" in self.definition


async def operations(http: httpx.AsyncClient) -> list[Operation]:
    """All of them."""
    document = (await http.get("/schema/openapi.json")).raise_for_status().json()
    return [
        Operation(method, path, item[method])
        for path, item in document["paths"].items()
        for method in METHODS
        if method in item
    ]


async def text_of(
    http: httpx.AsyncClient, method: str, path: str, *, enough: Callable[[str], bool], **sent: Any
) -> str:
    """An answer's text; of an event stream that does not end, what came until it was ``enough``."""
    text = ""
    async with asyncio.timeout(30), http.stream(method, path, **sent) as answer:
        endless = answer.headers.get("content-type", "").startswith("text/event-stream")
        async for piece in answer.aiter_text():
            text += piece
            if endless and enough(text):
                break
    return text
