"""One entry of ``mcpServers``: from JSON to `ServerConfig` (CONF-1, CONF-3, CONF-8)."""

import hmac
import json
import math
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import urlsplit

from moorage.config.document import JsonPath
from moorage.config.faults import FaultCollector, kind_of
from moorage.config.names import did_you_mean
from moorage.config.placeholders import Resolution, resolve, split_scheme
from moorage.config.rules import server_rule
from moorage.config.secrecy import MASK
from moorage.config.sections import SectionSet, validate_section
from moorage.config.showing import secrets_in, secrets_in_force
from moorage.contract import (
    DEFAULT_SESSION_INIT_TIMEOUT_SECONDS,
    CredentialDenied,
    SectionLevel,
    ServerConfig,
    Transport,
    check_header,
)

TIMEOUT_KEYS = ("session_init_timeout", "tool_call_timeout")
STDIO_KEYS = ("command", "args", "env", "cwd")
REMOTE_KEYS = ("url", "headers")
SERVER_KEYS = frozenset(
    {*STDIO_KEYS, *REMOTE_KEYS, *TIMEOUT_KEYS, "type", "transport", "enabled", "tool_name_prefix", "tools"}
)
# Keys of other MCP clients that need no warning: one is honoured, one says nothing that matters here.
_FOREIGN_KEYS = frozenset({"disabled", "description"})
_TRANSPORTS: dict[str, Transport] = {
    "stdio": "stdio",
    "sse": "sse",
    "http": "http",
    "streamable_http": "http",
    "streamable-http": "http",
    "streamablehttp": "http",
}


def read_entry(
    name: str,
    raw: Any,
    *,
    env: Mapping[str, str],
    sections: SectionSet,
    faults: FaultCollector,
    secrets: set[str],
    key: bytes,
) -> ServerConfig | None:
    """The server, or None where ``faults`` got a fatal one.

    Its resolved secrets are added to ``secrets``. ``key`` makes launch signatures one-way.
    """
    if not name.strip() or not name.isprintable():
        faults.error((), "the server's name is blank or holds control characters")
    if not isinstance(raw, dict):
        faults.error((), f"must be an object with a `command` or a `url`, not {kind_of(raw)}")
        return None
    reader = _EntryReader(name, raw, env, sections, faults)
    secrets |= reader.in_force
    return reader.read(key)


def transport_of(raw: Mapping[str, Any]) -> Transport | None:
    """The transport of an entry as written (CONF-1); None where it names none that is known."""
    spelled = raw.get("type") if raw.get("type") is not None else raw.get("transport")
    if spelled is None:
        return "http" if raw.get("url") is not None else "stdio"
    return _TRANSPORTS.get(spelled.lower()) if isinstance(spelled, str) else None


def enabled_of(raw: Mapping[str, Any]) -> bool:
    """Whether an entry as written is enabled; ``enabled`` wins over other clients' ``disabled``."""
    if isinstance(raw.get("enabled"), bool):
        return cast("bool", raw["enabled"])
    return raw.get("disabled") is not True


class _EntryReader:
    def __init__(
        self,
        name: str,
        raw: dict[str, Any],
        env: Mapping[str, str],
        sections: SectionSet,
        faults: FaultCollector,
    ) -> None:
        self._name = name
        self._raw = raw
        self._sections = sections
        self._faults = faults
        self._found = Resolution()
        self._entry: dict[str, Any] = resolve(raw, env, (), self._found)
        rule = server_rule(sections)
        self.in_force = secrets_in_force(self._entry, rule)
        self._secrets = {text for _, text in secrets_in(raw, rule)} | self.in_force
        self._secrets |= {text for path in self._found.variables if (text := self._at(path))}

    def read(self, key: bytes) -> ServerConfig | None:
        for note in self._found.notes:
            self._faults.warn(note.path, note.message)
        transport = self._transport()
        fields = self._remote(transport) if transport != "stdio" else self._stdio()
        self._warn_unused(transport)
        blocks = self._blocks((), self._entry, "server", transport)
        tools = self._tools(transport)
        known = SERVER_KEYS | blocks.keys() | set(self._sections.names("server"))
        extra = {k: v for k, v in self._entry.items() if k not in known}
        self._warn_unknown((), extra, SERVER_KEYS | set(self._sections.names("server")))
        server = ServerConfig(
            name=self._name,
            transport=transport,
            enabled=self._enabled(),
            session_init_timeout_seconds=self._timeout(
                "session_init_timeout", DEFAULT_SESSION_INIT_TIMEOUT_SECONDS
            ),
            tool_call_timeout_seconds=self._timeout("tool_call_timeout", None),
            tool_name_prefix=self._flag("tool_name_prefix", True),
            sections=blocks,
            tool_sections=tools,
            extra=extra,
            launch_signature=self._signature(key, transport, fields, blocks),
            **fields,
        )
        return None if self._faults.fatal else server

    # Transport

    def _transport(self) -> Transport:
        spellings = {k: self._entry[k] for k in ("type", "transport") if self._entry.get(k) is not None}
        resolved: dict[str, Transport] = {}
        for key, value in spellings.items():
            known = _TRANSPORTS.get(value.lower()) if isinstance(value, str) else None
            if known is not None:
                resolved[key] = known
            elif key == "type" or "type" not in spellings:
                self._faults.error((key,), "must be one of stdio, sse, http (or streamable_http)")
        if len(spellings) == 2 and resolved.get("type") != resolved.get("transport"):
            self._faults.warn(("transport",), "differs from `type`, which wins")
        fallback: Transport = "http" if self._entry.get("url") is not None else "stdio"
        return resolved.get("type") or resolved.get("transport") or fallback

    def _warn_unused(self, transport: Transport) -> None:
        unused = REMOTE_KEYS if transport == "stdio" else STDIO_KEYS
        for key in unused:
            if self._entry.get(key):
                self._faults.warn((key,), f"is not used by a server of type {transport}")

    def _stdio(self) -> dict[str, Any]:
        command = self._text("command")
        if not (command or "").strip():
            remedy = "; to reach it by its `url`, set `type` to http or sse" if self._entry.get("url") else ""
            self._faults.error(
                ("command",) if "command" in self._raw else (),
                f"a stdio server needs a `command`{self._unset(('command',))}{remedy}",
            )
        return {
            "command": command,
            "args": tuple(self._text_list("args")),
            "env": self._text_map("env"),
            "cwd": self._text("cwd") or None,
        }

    def _remote(self, transport: Transport) -> dict[str, Any]:
        url = self._text("url")
        at: JsonPath = ("url",) if "url" in self._raw else ()
        if not (url or "").strip():
            self._faults.error(at, f"a server of type {transport} needs a `url`{self._unset(('url',))}")
        elif (problem := _url_problem(url or "")) is not None:
            self._faults.error(at, f"{problem}{self._origin(('url',))}")
        return {"url": url, "headers": self._headers()}

    def _headers(self) -> dict[str, str]:
        headers: dict[str, str] = {}
        spelled: dict[str, str] = {}
        for name, value in self._text_map("headers").items():
            path: JsonPath = ("headers", name)
            if (other := spelled.setdefault(name.lower(), name)) != name:
                self._faults.error(path, f"the header is given twice, also as {other!r}")
            if self._comes_out_empty(path, value):
                self._faults.warn(path, "the header comes out empty and is not sent")
                continue
            try:
                check_header(name, value, source="headers")
            except CredentialDenied as error:
                message = str(error).removeprefix("headers: ")
                self._faults.error(path, f"{message}{self._origin(path)}")
            headers[name] = value
        return headers

    def _comes_out_empty(self, path: JsonPath, value: str) -> bool:
        """Nothing, or nothing but a scheme word in front of unset variables."""
        if not value.strip():
            return True
        raw = self._raw["headers"][path[-1]]
        parts = split_scheme(raw) if self._found.variables.get(path) else None
        return parts is not None and value.strip() == parts[0]

    # Plain fields

    def _text(self, key: str) -> str | None:
        value = self._entry.get(key)
        if value is None or isinstance(value, str):
            return value
        self._faults.error((key,), f"must be text, not {kind_of(value)}")
        return None

    def _text_list(self, key: str) -> list[str]:
        value = self._entry.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            self._faults.error((key,), f"must be a list of texts, not {kind_of(value)}")
            return []
        for index, item in enumerate(value):
            if not isinstance(item, str):
                self._faults.error((key, index), f"must be text, not {kind_of(item)}: put it in quotes")
            else:
                self._check_characters((key, index), item)
        return [item for item in value if isinstance(item, str)]

    def _text_map(self, key: str) -> dict[str, str]:
        value = self._entry.get(key)
        if value is None:
            return {}
        if not isinstance(value, dict):
            self._faults.error((key,), f"must be an object of texts, not {kind_of(value)}")
            return {}
        for name, item in value.items():
            if not isinstance(item, str):
                self._faults.error((key, name), f"must be text, not {kind_of(item)}: put it in quotes")
            elif self._raw[key][name] == MASK:
                self._faults.warn(
                    (key, name), "is the mask that the API shows, not a secret: write the real value"
                )
            elif key == "env":
                self._check_characters((key, name), item)
                if not name or "=" in name or "\0" in name:
                    self._faults.error((key, name), "is no name of an environment variable")
        return {name: item for name, item in value.items() if isinstance(item, str)}

    def _check_characters(self, path: JsonPath, text: str) -> None:
        if "\0" in text:
            self._faults.error(
                path, f"holds a NUL character, which no process can be given{self._origin(path)}"
            )
        elif any(0xD800 <= ord(c) <= 0xDFFF for c in text) and path not in self._found.variables:
            self._faults.error(path, "holds half of a surrogate pair, which no process can be given")

    def _flag(self, key: str, default: bool) -> bool:
        value = self._entry.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            self._faults.error((key,), f"must be true or false, not {kind_of(value)}")
            return default
        return value

    def _enabled(self) -> bool:
        if "disabled" in self._entry:
            self._faults.warn(("disabled",), "is understood, but write `enabled` instead, which wins")
        self._flag("enabled", True)
        return enabled_of(self._entry)

    def _timeout(self, key: str, default: float | None) -> float | None:
        if key not in self._entry:
            return default
        value = self._entry[key]
        if value is None:
            return None
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not _is_positive(value):
            self._faults.error((key,), "must be a positive, finite number of seconds, or null for none")
            return default
        return float(value)

    # Sections

    def _blocks(
        self, at: JsonPath, entry: Mapping[str, Any], level: SectionLevel, transport: Transport
    ) -> dict[str, Any]:
        blocks: dict[str, Any] = {}
        for key, value in entry.items():
            if value is None or (level == "server" and key in SERVER_KEYS):
                continue
            section = self._sections.get(key, level)
            if section is None:
                if (why := self._sections.missing(key)) is not None:
                    self._faults.error((*at, key), why)
                continue
            if section.http_only and transport == "stdio":
                self._faults.warn((*at, key), "is for http and sse servers and is skipped on a stdio server")
                continue
            block, problems = validate_section(
                section, value, server=self._name, entry=self._raw, secrets=self._secrets
            )
            for problem in problems:
                note = self._faults.error if problem.fatal else self._faults.warn
                note((*at, key, *problem.path), problem.message)
            if block is not None:
                blocks[key] = block
        return blocks

    def _tools(self, transport: Transport) -> dict[str, Mapping[str, Any]]:
        tools = self._entry.get("tools")
        if tools is None:
            return {}
        if not isinstance(tools, dict):
            # Other clients keep a list of tool names there; the file is theirs, too.
            self._faults.warn(
                ("tools",), f"is not used: an object by tool name is expected, not {kind_of(tools)}"
            )
            return {}
        result: dict[str, Mapping[str, Any]] = {}
        known = self._sections.names("tool")
        for tool, entry in tools.items():
            path: JsonPath = ("tools", tool)
            if not isinstance(entry, dict):
                self._faults.error(path, f"must be an object, not {kind_of(entry)}")
                continue
            if blocks := self._blocks(path, entry, "tool", transport):
                result[tool] = blocks
            self._warn_unknown(path, {k: v for k, v in entry.items() if k not in known}, known)
        return result

    def _warn_unknown(self, at: JsonPath, extra: Mapping[str, Any], known: Any) -> None:
        for key in extra:
            if key in _FOREIGN_KEYS or self._sections.missing(key) is not None:
                continue
            self._faults.warn((*at, key), f"unknown key, kept and not used{did_you_mean(key, sorted(known))}")

    # Messages

    def _at(self, path: JsonPath) -> str:
        value: Any = self._entry
        for part in path:
            value = value[part]
        return cast("str", value)

    def _unset(self, path: JsonPath) -> str:
        names = self._found.unset_at(path)
        return f" ({', '.join(names)} is not set)" if names else ""

    def _origin(self, path: JsonPath) -> str:
        names = self._found.variables.get(path, ())
        return f" (the value comes from the environment: {', '.join(names)})" if names else ""

    def _signature(
        self, key: bytes, transport: Transport, fields: Mapping[str, Any], blocks: Mapping[str, Any]
    ) -> str:
        # Sections that carry credentials count as written and resolved: a model may hide values on purpose.
        secret = {n: self._entry[n] for n in blocks if self._carries_secrets(n)}
        content = json.dumps([transport, fields, secret], sort_keys=True, default=str)
        return hmac.digest(key, content.encode("utf-8", "surrogatepass"), "sha256").hex()

    def _carries_secrets(self, name: str) -> bool:
        section = self._sections.get(name, "server")
        return section is not None and bool(section.secret_paths or section.mask)


def _is_positive(value: float) -> bool:
    try:
        return math.isfinite(value) and value > 0
    except OverflowError:  # an integer that no float can hold
        return False


def _url_problem(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "is no valid URL"
    if parts.scheme.lower() not in ("http", "https"):
        return "must be a URL that starts with http:// or https://"
    if not host or any(c.isspace() for c in url):
        return "is no valid URL: a host is expected, and no white space"
    return None
