"""From a tool's answer to what an agent gets (TOOL-10)."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema import SchemaError
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for
from langchain_core.messages import ToolMessage
from langchain_core.messages.content import create_file_block, create_image_block, create_text_block
from mcp.types import (
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    TextContent,
)
from pydantic import AnyUrl
from referencing import Registry
from referencing.exceptions import Unresolvable

from moorage.contract import ToolResult
from moorage_drivers.mcp.text import neutral, storable

MAX_TEXT_CHARACTERS = 100_000
"""Of all text of one answer; what comes after is named, not shown."""
MAX_BLOB_CHARACTERS = 8_000_000
MAX_STRUCTURED_BYTES = 262_144
MAX_SCHEMA_BYTES = 262_144

Block = dict[str, Any]


def blocks_of(result: ToolResult) -> list[Block]:
    """Content blocks as chat models take them; an answer without content shows its structured part."""
    blocks: list[Block] = []
    left = MAX_TEXT_CHARACTERS
    for content in result.content:
        for block in _blocks(content):
            if block["type"] == "text":
                block, left = _cut(block, left)
            blocks.append(block)
    if not blocks and result.structured is not None:
        block, _ = _cut(_text(_dumped(result.structured)), left)
        blocks.append(block)
    return blocks or [_text("(the tool answered without content)")]


def artifact_of(result: ToolResult) -> Block | None:
    """The structured part, unless it is too large for a thread's state."""
    if result.structured is None:
        return None
    dumped = _dumped(result.structured)
    if len(dumped.encode()) > MAX_STRUCTURED_BYTES:
        return {"structured_content": {"moorage_truncated": True, "bytes": len(dumped.encode())}}
    return {"structured_content": json.loads(dumped)}


def message_of(blocks: list[Block], artifact: Any, *, call_id: str | None, name: str, error: bool) -> Any:
    """The tool message where the call has an id; else what the adapters make their own output from."""
    if call_id is not None:
        return ToolMessage(
            content=blocks,  # type: ignore[arg-type]
            artifact=artifact,
            tool_call_id=call_id,
            name=name,
            status="error" if error else "success",
        )
    structured = artifact.get("structured_content") if isinstance(artifact, dict) else None
    return CallToolResult(
        content=[_native(block) for block in blocks],
        structuredContent=structured if isinstance(structured, dict) else None,
        isError=error,
    )


class OutputSchema:
    """What a tool says of its structured output; used to judge ordinary calls only (TASK-23)."""

    def __init__(self, schema: Mapping[str, Any] | None) -> None:
        self._schema = schema
        self._validator: Validator | None = None

    def complaint(self, result: ToolResult) -> str | None:
        """Why the answer breaks the schema; None where it does not, or the schema is of no use."""
        if self._schema is None or result.is_error:
            return None
        if result.structured is None:
            return "the answer has no structured content, which the tool's output schema asks for"
        try:
            validator = self._usable()
            if validator is None:
                return None
            problem = next(iter(validator.iter_errors(result.structured)), None)
        except (SchemaError, Unresolvable, RecursionError):
            self._schema = None
            return None
        if problem is None:
            return None
        where = "/".join(str(part) for part in problem.absolute_path) or "the top"
        what = f"{neutral(where, 100)}: {neutral(problem.message, 200)}"
        return f"the answer breaks the tool's output schema at {what}"

    def _usable(self) -> Validator | None:
        if self._validator is None and self._schema is not None:
            if len(_dumped(self._schema)) > MAX_SCHEMA_BYTES:
                self._schema = None
                return None
            kind = validator_for(self._schema)
            kind.check_schema(dict(self._schema))
            registry: Registry[Any] = Registry()  # nothing is fetched for a server's `$ref`
            self._validator = kind(dict(self._schema), registry=registry)
        return self._validator


def _blocks(content: Mapping[str, Any]) -> Iterator[Block]:
    kind = content.get("type")
    if kind == "text" and isinstance(content.get("text"), str):
        yield _text(content["text"])
    elif kind in ("image", "audio") and isinstance(content.get("data"), str):
        yield _binary(content["data"], content.get("mimeType"), image=kind == "image")
    elif kind == "resource_link" and isinstance(content.get("uri"), str):
        yield _text(_link(content))
    elif kind == "resource" and isinstance(content.get("resource"), dict):
        yield _resource(content["resource"])
    else:
        yield _text(_dumped(content))


def _resource(resource: Mapping[str, Any]) -> Block:
    if isinstance(resource.get("text"), str):
        return _text(resource["text"])
    if isinstance(resource.get("blob"), str):
        mime = resource.get("mimeType")
        image = isinstance(mime, str) and mime.startswith("image/")
        return _binary(resource["blob"], mime, image=image)
    return _text(_dumped(resource))


def _binary(data: str, mime: Any, *, image: bool) -> Block:
    kind = mime if isinstance(mime, str) and mime else "application/octet-stream"
    if len(data) > MAX_BLOB_CHARACTERS:
        return _text(f"({neutral(kind, 100)} of about {len(data) * 3 // 4} bytes; too large to be shown)")
    if image:
        return dict(create_image_block(base64=data, mime_type=kind))
    return dict(create_file_block(base64=data, mime_type=kind))


def _link(link: Mapping[str, Any]) -> str:
    details = [link[key] for key in ("mimeType", "description") if isinstance(link.get(key), str)]
    name = link.get("title") or link.get("name")
    head = f"{name}: {link['uri']}" if isinstance(name, str) and name else str(link["uri"])
    return f"{head} ({'; '.join(details)})" if details else head


def _text(text: str) -> Block:
    return dict(create_text_block(text=storable(text)))


def _cut(block: Block, left: int) -> tuple[Block, int]:
    text: str = block["text"]
    if len(text) <= left:
        return block, left - len(text)
    return {**block, "text": f"{text[:left]}\n… (cut off: {len(text)} characters in all)"}, 0


def _dumped(value: Any) -> str:
    """JSON, whatever the value; NaN and the like are no JSON and become null."""
    try:
        dumped = json.dumps(value, ensure_ascii=False, allow_nan=False, default=str)
    except ValueError:
        dumped = json.dumps(_finite(value), ensure_ascii=False, default=str)
    return storable(dumped.replace("\\u0000", "\\ufffd"))


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


def _native(block: Block) -> ContentBlock:
    if block["type"] == "image":
        return ImageContent(type="image", data=block["base64"], mimeType=block["mime_type"])
    if block["type"] == "file":
        blob = BlobResourceContents(
            uri=AnyUrl("moorage:blob"), blob=block["base64"], mimeType=block["mime_type"]
        )
        return EmbeddedResource(type="resource", resource=blob)
    return TextContent(type="text", text=block["text"])
