"""A server's tools, read leniently: one malformed tool costs itself only (TOOL-2)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp import types
from pydantic import BaseModel, ConfigDict

from moorage_drivers.mcp.session import JsonRpcError, Session

MAX_PAGES = 1_000
MAX_TOOLS = 10_000
MAX_DESCRIPTION_CHARACTERS = 16_384
_METHOD_NOT_FOUND = -32_601


class AnyResult(BaseModel):
    """Whatever object the server answered; judged by us, not by the client library."""

    model_config = ConfigDict(extra="allow")

    @property
    def fields(self) -> dict[str, Any]:
        return self.__pydantic_extra__ or {}


@dataclass(frozen=True, slots=True)
class RawTool:
    """A tool as its server advertises it."""

    name: str
    description: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None = None
    title: str | None = None
    annotations: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Listing:
    """What a server has, and what was wrong with it."""

    tools: list[RawTool] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


async def list_tools(session: Session) -> Listing:
    """All pages. Raises what `Session.request` raises."""
    listing, cursor, seen = Listing(), None, set[str]()
    for _ in range(MAX_PAGES):
        params = types.PaginatedRequestParams(cursor=cursor) if cursor else None
        request = types.ClientRequest(types.ListToolsRequest(params=params))
        try:
            page = (await session.request(request, AnyResult, None)).fields
        except JsonRpcError as error:
            if error.code == _METHOD_NOT_FOUND and cursor is None:
                return listing  # a server without tools
            raise
        _take(page.get("tools"), listing)
        cursor = page.get("nextCursor")
        if not isinstance(cursor, str) or not cursor:
            return listing
        if cursor in seen:
            listing.warnings.append("the list of tools repeats a cursor; it was read up to there")
            return listing
        if len(listing.tools) >= MAX_TOOLS:
            break
        seen.add(cursor)
    listing.warnings.append(f"the list of tools is too long; {len(listing.tools)} tools were read")
    return listing


def _take(tools: Any, listing: Listing) -> None:
    if not isinstance(tools, list):
        listing.warnings.append("the list of tools is no list")
        return
    known = {tool.name for tool in listing.tools}
    for number, raw in enumerate(tools):
        tool = _tool(raw)
        if isinstance(tool, str):
            name = raw.get("name") if isinstance(raw, dict) else None
            which = f"tool {name[:100]!r}" if isinstance(name, str) and name else f"tool number {number}"
            listing.warnings.append(f"{which} is left out: {tool}")
        elif tool.name in known:
            listing.warnings.append(f"tool {tool.name[:100]!r} is listed more than once")
        else:
            known.add(tool.name)
            listing.tools.append(tool)


def _tool(raw: Any) -> RawTool | str:
    """The tool, or why it cannot be used."""
    if not isinstance(raw, dict):
        return "it is no object"
    name, schema = raw.get("name"), raw.get("inputSchema")
    if not isinstance(name, str) or not name.strip():
        return "it has no name"
    if not isinstance(schema, dict):
        return "it has no inputSchema"
    if schema.get("type") != "object":
        return "its inputSchema does not describe an object"
    properties = schema.get("properties")
    if properties is not None and not isinstance(properties, dict):
        return "the properties of its inputSchema are no object"
    # Model providers want a schema object for each property; `true` means "anything" (C50).
    plain = {key: value if isinstance(value, dict) else {} for key, value in (properties or {}).items()}
    output, annotations = raw.get("outputSchema"), raw.get("annotations")
    description, title = raw.get("description"), raw.get("title")
    return RawTool(
        name=name,
        description=description[:MAX_DESCRIPTION_CHARACTERS] if isinstance(description, str) else "",
        input_schema={**schema, "properties": plain},
        output_schema=output if isinstance(output, dict) else None,
        title=title if isinstance(title, str) else None,
        annotations=annotations if isinstance(annotations, dict) else {},
    )
