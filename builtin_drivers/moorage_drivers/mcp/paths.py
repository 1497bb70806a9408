"""Local file references in answers become virtual paths; nothing is copied (STDIO-4)."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from moorage.contract import VIRTUAL_ROOT, ToolResult
from moorage_drivers.mcp.files import changed_since

MAX_TEXT_CHARACTERS = 1_000_000
_TRAILING = ".,;:!?)]}>*'\""
_DELIMITERS = r"\s\"'`<>|*"
_QUOTES = {'"': '"', "'": "'", "`": "`"}
# A bare file name or a relative path that is no part of a longer path, URL or word.
_NAME = re.compile(r"(?<![\w/.~:@%-])(?:\./)?[\w@%+][\w@%+.-]*(?:/[\w@%+.-]+)*(?![\w/])")


@dataclass(frozen=True, slots=True)
class Translator:
    """For one call: ``root`` is the thread's tree, ``workspace`` the server's folder in it, ``start_ns``
    the time at which the call began."""

    root: Path
    workspace: Path
    start_ns: int

    def concerns(self, result: ToolResult) -> bool:
        """Whether the file system has to be looked at, for this result."""
        return any(
            block.get("type") == "resource_link"
            or (isinstance(text := block.get("text"), str) and ("." in text or "/" in text))
            for block in result.content
        )

    def result(self, result: ToolResult) -> ToolResult:
        """The result with every reference translated that names an existing file of the thread.

        Blocking: looks at the file system.
        """
        content = tuple(self._block(block) for block in result.content)
        return result if content == result.content else replace(result, content=content)

    def _block(self, block: Mapping[str, Any]) -> Mapping[str, Any]:
        if block.get("type") == "text" and isinstance(block.get("text"), str):
            text = self.text(block["text"])
            return block if text == block["text"] else {**block, "text": text}
        if block.get("type") == "resource_link" and isinstance(block.get("uri"), str):
            virtual = self._uri(block["uri"])
            return block if virtual is None else {**block, "uri": virtual}
        return block

    def _uri(self, uri: str) -> str | None:
        try:
            parts = urlsplit(uri)
        except ValueError:
            return None
        if parts.scheme == "file" and parts.netloc in ("", "localhost"):
            return self._virtual(unquote(parts.path))
        return self._virtual(uri) if uri.startswith("/") else None

    def text(self, text: str) -> str:
        """Free text, matched conservatively."""
        if len(text) > MAX_TEXT_CHARACTERS:
            return text
        return self._names(self._absolute(text))

    def _absolute(self, text: str) -> str:
        pieces: list[str] = []
        done = 0
        for match in re.finditer(rf"(?<![\w./~-])(file://(?:localhost)?)?{re.escape(str(self.root))}/", text):
            if match.start() < done:
                continue
            end = self._end(text, match.start(), match.end())
            found = self._longest(text[match.start() : end], is_uri=match[1] is not None)
            if found is not None:
                virtual, length = found
                pieces += (text[done : match.start()], virtual)
                done = match.start() + length
        return "".join([*pieces, text[done:]])

    def _end(self, text: str, start: int, after: int) -> int:
        """Where a path may end: at its closing quote, else at the first delimiter."""
        quote = _QUOTES.get(text[start - 1]) if start else None
        if quote and (closing := text.find(quote, after)) >= 0 and "\n" not in text[after:closing]:
            return closing
        delimiter = re.compile(f"[{_DELIMITERS}]").search(text, after)
        return delimiter.start() if delimiter else len(text)

    def _longest(self, candidate: str, *, is_uri: bool) -> tuple[str, int] | None:
        while len(candidate) > len(str(self.root)):
            virtual = self._uri(candidate) if is_uri else self._virtual(candidate)
            if virtual is not None:
                return virtual, len(candidate)
            if candidate[-1] not in _TRAILING:
                return None
            candidate = candidate[:-1]
        return None

    def _virtual(self, path: str) -> str | None:
        """The virtual path, where this is an existing file within the tree, links followed."""
        lexical = os.path.normpath(path)
        try:
            inner = Path(lexical).relative_to(self.root)
            real = Path(path).resolve(strict=True)
            if not real.is_relative_to(self.root.resolve(strict=True)) or not real.is_file():
                return None
        except (OSError, ValueError, RuntimeError):
            return None
        return f"{VIRTUAL_ROOT}/{inner.as_posix()}"

    def _names(self, text: str) -> str:
        """Bare names and relative paths, where exactly one file that this call touched is meant."""
        if not _NAME.search(text):
            return text
        touched = list(changed_since(self.workspace, self.start_ns, everything=True))
        if not touched:
            return text
        by_name: dict[str, list[Path]] = {}
        for path in touched:
            by_name.setdefault(path.name, []).append(path)
            by_name.setdefault(path.relative_to(self.workspace).as_posix(), [path])

        def meant(match: re.Match[str]) -> str:
            name = match[0].rstrip(".")
            if "." not in name and "/" not in name:
                return match[0]  # a mere word
            paths = by_name.get(name.removeprefix("./"), [])
            virtual = self._virtual(str(paths[0])) if len(paths) == 1 else None
            return match[0] if virtual is None else virtual + match[0][len(name) :]

        return _NAME.sub(meant, text)
