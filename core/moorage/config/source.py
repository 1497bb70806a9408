"""The extensions config in force (CONF-2, CONF-4, CONF-7)."""

import logging
import os
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from moorage.config.document import Document
from moorage.config.loading import Loaded, load, load_raw, merge_last_good
from moorage.config.paths import named_path, resolve_path, search_upward, write_path
from moorage.config.sections import MissingDistribution, SectionSet
from moorage.config.watched import FileState, WatchedFile
from moorage.contract import ConfigFault, ConfigSection, ExtensionsSnapshot
from moorage.contract.empty import EMPTY

_log = logging.getLogger(__name__)
WarningSink = Callable[[ConfigFault], None]


class ExtensionsFile:
    """Reads the extensions config and keeps the last good one; an `ExtensionsSource`. Thread-safe.

    ``sections``: what the loaded plugins contribute. ``missing_distribution``: the distribution that would
    own a key (PLUG-4). ``remembered_sections``: keys that were in force before, with their distribution
    where known. ``on_warning`` gets every fault once per reload that meets it; without it they are logged.
    ``on_secret`` gets every secret that comes into force, resolved: hand it `Redactor.register` (CRED-9).
    """

    def __init__(
        self,
        *,
        explicit: Path | None,
        env: Mapping[str, str],
        cwd: Path,
        sections: Sequence[ConfigSection] = (),
        missing_distribution: MissingDistribution | None = None,
        remembered_sections: Mapping[str, str | None] = EMPTY,
        on_warning: WarningSink | None = None,
        on_secret: Callable[[str], None] | None = None,
    ) -> None:
        self._explicit = explicit
        self._env = env
        self._cwd = cwd
        self.sections = SectionSet(
            sections, missing_distribution=missing_distribution, remembered=remembered_sections
        )
        self._on_warning = on_warning or _log_fault
        self._on_secret = on_secret
        self._known_secrets: frozenset[str] = frozenset()
        self._key = secrets.token_bytes(32)
        # Reentrant: a section's check runs under it and may ask for the snapshot in force.
        self._lock = threading.RLock()
        self._file = WatchedFile(self._locate)
        self._found: Path | None = None
        self._snapshot: ExtensionsSnapshot | None = None
        self._good: ExtensionsSnapshot | None = None
        """The last snapshot without what was found out about the file since."""
        self._reported: frozenset[ConfigFault] = frozenset()
        self._unreadable: str | None = None

    @property
    def path(self) -> Path | None:
        """The file in use, None where there is none yet."""
        snapshot = self._snapshot
        return snapshot.path if snapshot is not None else None

    def resolve_path(self) -> Path | None:
        """Where the file lies now; raises `FileNotFoundError` for a named path that does not exist."""
        return resolve_path(self._explicit, self._env, self._cwd)

    def write_path(self) -> Path:
        """Where a write goes; raises `FileNotFoundError` like `resolve_path`."""
        return write_path(self._explicit, self._env, self._cwd)

    def current(self) -> ExtensionsSnapshot:
        """The snapshot in force; the very same object as long as the file's content is the same.

        Looks at the file on every call (see `WatchedFile` for what that costs). Never raises for a broken
        or unreadable file. Raises `FileNotFoundError` only where a named path does not exist at the first
        call; one that disappears later leaves the last snapshot in force (CONF-2).
        """
        with self._lock:
            try:
                state = self._file.look()
            except FileNotFoundError:
                if self._snapshot is None:
                    self._start_without_file()
            except OSError as error:
                self._meet_unreadable(error)
            else:
                if state is not None:
                    self._take(state)
                elif self._unreadable is not None and self._good is not None:
                    self._put(self._good)
                self._unreadable = None
            assert self._snapshot is not None
            return self._snapshot

    def parse(self, data: bytes) -> Loaded:
        """What this content would load to, with nothing put in force."""
        return load(data, env=self._env, sections=self.sections, key=self._key)

    def parse_raw(self, raw: dict[str, Any], document: Document) -> Loaded:
        """`parse` for content that is parsed already."""
        return load_raw(raw, document, env=self._env, sections=self.sections, key=self._key)

    def _locate(self) -> Path | None:
        if named_path(self._explicit, self._env, self._cwd) is not None:
            self._found = None
            return self.resolve_path()
        found = search_upward(self._cwd)
        gone = self._found
        # A file that the search found and that is gone now must not silently give way to one further up.
        if gone is not None and found != gone and not gone.exists() and _further_up(found, gone):
            return None
        self._found = found
        return found

    def _start_without_file(self) -> None:
        if named_path(self._explicit, self._env, self._cwd) is not None:
            self.resolve_path()
        self._snapshot = ExtensionsSnapshot()

    def _take(self, state: FileState) -> None:
        last = self._good
        path = Path(state.signature.path)
        if last is not None and state.same_content(last.signature):
            # The same content, restored or under another path: nothing to reload, no session to restart.
            if last.path != path:
                last = replace(last, path=path, signature=state.signature)
            self._put(last, good=True)
            return
        loaded = self.parse(state.data)
        if loaded.broken and last is not None:
            note = "the last good configuration stays in force until the file is repaired"
            faults = (*loaded.faults, ConfigFault(where=str(path), message=note, fatal=False))
            self._put(replace(last, faults=faults))
            return
        self._announce(loaded.secrets)
        servers, refused, merged = merge_last_good(loaded, last)
        interceptors = loaded.interceptors
        if interceptors is None:
            interceptors = last.interceptors if last is not None else ()
        self._put(
            ExtensionsSnapshot(
                path=path,
                signature=state.signature,
                servers=MappingProxyType(servers),
                interceptors=interceptors,
                faults=tuple(merged),
                refused=MappingProxyType(refused),
            ),
            good=True,
        )

    def _announce(self, found: frozenset[str]) -> None:
        if self._on_secret is not None:
            for secret in found - self._known_secrets:
                self._on_secret(secret)
        self._known_secrets = found

    def _meet_unreadable(self, error: OSError) -> None:
        reason = error.strerror or type(error).__name__
        if self._snapshot is not None and self._unreadable == reason:
            return
        self._unreadable = reason
        path = error.filename or self.path or "the extensions config"
        fault = ConfigFault(where=os.fspath(path), message=f"the file cannot be read: {reason}")
        self._put(replace(self._snapshot or ExtensionsSnapshot(), faults=(fault,)))

    def _put(self, snapshot: ExtensionsSnapshot, *, good: bool = False) -> None:
        self._snapshot = snapshot
        if good:
            self._good = snapshot
        faults = frozenset(snapshot.faults)
        for fault in snapshot.faults:
            if fault not in self._reported:
                self._on_warning(fault)
        self._reported = faults


def _further_up(found: Path | None, gone: Path) -> bool:
    return found is None or gone.parent.is_relative_to(found.parent)


def _log_fault(fault: ConfigFault) -> None:
    level = logging.ERROR if fault.fatal else logging.WARNING
    _log.log(level, "extensions config, %s: %s", fault.where, fault.message)


def sections_in_use(snapshot: ExtensionsSnapshot) -> frozenset[str]:
    """The sections in force, at either level: what a store remembers, so that a plugin that is missing at
    the next start is not silently done without (PLUG-4)."""
    names: set[str] = set()
    for server in snapshot.servers.values():
        names.update(server.sections)
        for blocks in server.tool_sections.values():
            names.update(blocks)
    return frozenset(names)
