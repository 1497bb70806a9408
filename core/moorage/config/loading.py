"""From the file's bytes to an `ExtensionsSnapshot` (CONF-1, CONF-7)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from moorage.config.document import Document, DocumentError, parse_document
from moorage.config.entries import enabled_of, read_entry
from moorage.config.faults import FaultCollector, kind_of
from moorage.config.names import did_you_mean
from moorage.config.placeholders import Resolution, resolve
from moorage.config.sections import SectionSet
from moorage.contract import ConfigFault, ExtensionsSnapshot, ServerConfig

TOP_LEVEL_KEYS = ("mcpServers", "mcpInterceptors")


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a file holds. ``broken``: nothing of it could be used, and ``raw`` is None then."""

    raw: dict[str, Any] | None = field(default=None, repr=False)
    servers: Mapping[str, ServerConfig] = field(default_factory=dict)
    interceptors: tuple[str, ...] | None = ()
    """None where they are given in a form that cannot be used."""
    faults: tuple[ConfigFault, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    """Every secret in it, resolved (CRED-9)."""

    @property
    def broken(self) -> bool:
        return self.raw is None


class BrokenFile(Exception):
    """The file as a whole cannot be used."""

    def __init__(self, fault: ConfigFault) -> None:
        super().__init__(f"{fault.where}: {fault.message}")
        self.fault = fault


def read_raw(data: bytes) -> tuple[dict[str, Any], Document]:
    """The file as written, without any change. Raises `BrokenFile` where it has not the right shape."""
    try:
        document = parse_document(data)
    except DocumentError as error:
        where = f"line {error.line}, column {error.column}"
        raise BrokenFile(ConfigFault(where=where, message=f"the file is no valid JSON: {error}")) from None
    raw = document.value
    if not isinstance(raw, dict):
        message = f"the file must hold a JSON object with `mcpServers`, not {kind_of(raw)}"
        raise BrokenFile(ConfigFault(where="line 1, column 1", message=message))
    servers = raw.get("mcpServers")
    if servers is not None and not isinstance(servers, dict):
        message = f"must be an object by server name, not {kind_of(servers)}"
        raise BrokenFile(ConfigFault(where=document.where(("mcpServers",)), message=message))
    return raw, document


def load(data: bytes, *, env: Mapping[str, str], sections: SectionSet, key: bytes) -> Loaded:
    """Read the file's content; never raises for what is in it. A broken entry costs itself only."""
    try:
        raw, document = read_raw(data)
    except BrokenFile as broken:
        return Loaded(faults=(broken.fault,))
    return load_raw(raw, document, env=env, sections=sections, key=key)


def load_raw(
    raw: dict[str, Any], document: Document, *, env: Mapping[str, str], sections: SectionSet, key: bytes
) -> Loaded:
    """`load` for content that is parsed already."""
    top = FaultCollector(document)
    for path in document.duplicates:
        top.warn(path, "the key is given more than once; the last one counts")
    for name in raw.keys() - set(TOP_LEVEL_KEYS):
        top.warn((name,), f"unknown key, kept and not used{did_you_mean(name, TOP_LEVEL_KEYS)}")
    interceptors = _interceptors(raw, env, top)
    faults = list(top.faults)
    servers: dict[str, ServerConfig] = {}
    refused: dict[str, str] = {}
    secrets: set[str] = set()
    for name, entry in (raw.get("mcpServers") or {}).items():
        collector = FaultCollector(document, name)
        server = read_entry(
            name, entry, env=env, sections=sections, faults=collector, secrets=secrets, key=key
        )
        faults.extend(collector.faults)
        if server is not None:
            servers[name] = server
        elif (fatal := collector.fatal) is not None:
            refused[name] = f"{fatal.where}: {fatal.message}"
    return Loaded(raw, servers, interceptors, tuple(faults), refused, frozenset(secrets))


def _interceptors(
    raw: Mapping[str, Any], env: Mapping[str, str], faults: FaultCollector
) -> tuple[str, ...] | None:
    key = "mcpInterceptors"
    found = Resolution()
    value = resolve(raw.get(key), env, (key,), found)
    for note in found.notes:
        faults.warn(note.path, note.message)
    if value is None:
        return ()
    paths = value if isinstance(value, list) else [value]
    if not isinstance(value, list | str) or not all(isinstance(path, str) and path.strip() for path in paths):
        # Without this one the gateway would start with a silent gap in the chain (PLUG-9).
        faults.error((key,), "must be a `module:builder` path or a list of such paths")
        return None
    return tuple(path.strip() for path in paths)


def merge_last_good(
    loaded: Loaded, last: ExtensionsSnapshot | None
) -> tuple[dict[str, ServerConfig], dict[str, str], list[ConfigFault]]:
    """What is in force after a reload: a broken entry keeps its last good configuration (CONF-7), unless
    it says that it is disabled."""
    servers = dict(loaded.servers)
    refused = dict(loaded.refused)
    faults = list(loaded.faults)
    if last is None or loaded.raw is None:
        return servers, refused, faults
    order = list(loaded.raw.get("mcpServers") or {})
    for name in loaded.refused:
        entry = (loaded.raw.get("mcpServers") or {})[name]
        if (good := last.servers.get(name)) is None or (isinstance(entry, dict) and not enabled_of(entry)):
            continue
        servers[name] = good
        del refused[name]
        message = "the server's last good configuration stays in force until this is repaired"
        faults.append(ConfigFault(where=f"mcpServers.{name}", message=message, server=name, fatal=False))
    return {name: servers[name] for name in order if name in servers}, refused, faults
