"""Changes the extensions config, one writer at a time (CONF-5, ADMIN)."""

import asyncio
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from moorage.config.document import Document
from moorage.config.errors import ConfigRejected, ConfigWriteFailed, PreconditionFailed, UnreadableConfig
from moorage.config.loading import BrokenFile, Loaded, read_raw
from moorage.config.locks import file_lock
from moorage.config.plan import ConfigPlan, etag_of, plan_enabled, plan_replace
from moorage.config.showing import masked
from moorage.config.source import ExtensionsFile
from moorage.config.writing import replace_file, serialise
from moorage.contract import ConfigFault, ExtensionsSnapshot

Approve = Callable[[ConfigPlan], None]


@dataclass(frozen=True, slots=True)
class ConfigView:
    """What a GET answers: the masked servers, and the ETag of exactly this view."""

    config: Mapping[str, Any]
    etag: str
    faults: tuple[ConfigFault, ...] = ()


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """A change that was made, or that a dry run describes.

    ``etag`` is that of the view after the change. ``snapshot`` is what is in force now.
    """

    plan: ConfigPlan
    etag: str
    written: bool
    snapshot: ExtensionsSnapshot


@dataclass(frozen=True, slots=True)
class _Stored:
    target: Path
    raw: dict[str, Any] = field(repr=False)
    data: bytes | None = field(repr=False)


class ConfigEditor:
    """Reads, changes, writes and reloads the file of an `ExtensionsFile`.

    Everything blocking runs in a worker thread, which alone holds the locks: a request that is cancelled
    meanwhile neither releases them nor leaves half a change.
    """

    def __init__(self, source: ExtensionsFile, *, lock_timeout_seconds: float = 10.0) -> None:
        self._source = source
        self._lock_timeout_seconds = lock_timeout_seconds
        self._lock = threading.Lock()

    async def view(self) -> ConfigView:
        """The file as it is now, masked (ADMIN-1).

        Raises `UnreadableConfig` where it cannot be read, and `FileNotFoundError` where the named one is
        missing.
        """
        return await asyncio.to_thread(self._view)

    async def replace(
        self,
        submitted: Mapping[str, Any],
        *,
        if_match: str | None = None,
        dry_run: bool = False,
        approve: Approve | None = None,
    ) -> ConfigChange:
        """Replace the servers (ADMIN-2, ADMIN-6).

        ``approve`` is called with the plan under the lock, before anything is written and also in a dry
        run; what it raises aborts the change and passes. Raises `ConfigRejected`, `PreconditionFailed`,
        `UnreadableConfig`, `ConfigWriteFailed`, `FileNotFoundError`; the file is then as it was.
        """

        def plan(raw: dict[str, Any]) -> ConfigPlan:
            return plan_replace(submitted, raw, self._source.sections, self._load)

        return await asyncio.to_thread(self._change, plan, if_match, dry_run, approve)

    async def set_enabled(
        self,
        server: str,
        enabled: bool,
        *,
        if_match: str | None = None,
        dry_run: bool = False,
        approve: Approve | None = None,
    ) -> ConfigChange:
        """Enable or disable one server (ADMIN-3). Like `replace`; raises `NotFound`, too."""

        def plan(raw: dict[str, Any]) -> ConfigPlan:
            return plan_enabled(server, enabled, raw, self._source.sections, self._load)

        return await asyncio.to_thread(self._change, plan, if_match, dry_run, approve)

    def _load(self, raw: dict[str, Any], document: Document) -> Loaded:
        return self._source.parse_raw(raw, document)

    def _view(self) -> ConfigView:
        stored = self._read(self._target())
        sections = self._source.sections
        return ConfigView(
            masked(stored.raw, sections), etag_of(stored.raw, sections), self._source.current().faults
        )

    def _change(
        self,
        make_plan: Callable[[dict[str, Any]], ConfigPlan],
        if_match: str | None,
        dry_run: bool,
        approve: Approve | None,
    ) -> ConfigChange:
        with self._locked() as target:
            stored = self._read(target)
            sections = self._source.sections
            if if_match is not None and not _matches(if_match, etag_of(stored.raw, sections)):
                raise PreconditionFailed("the extensions config has changed since it was read: read it again")
            plan = make_plan(stored.raw)
            if approve is not None:
                approve(plan)
            written = plan.changes_anything and not dry_run
            if written:
                self._write(stored, dict(plan.after))
            after = plan.before if dry_run else plan.after
            return ConfigChange(plan, etag_of(after, sections), written, self._source.current())

    @contextmanager
    def _locked(self) -> Iterator[Path]:
        if not self._lock.acquire(timeout=self._lock_timeout_seconds):
            raise ConfigWriteFailed("another change of the extensions config does not finish; try again")
        try:
            while True:
                target = self._target()
                with file_lock(target, timeout_seconds=self._lock_timeout_seconds):
                    if self._target() == target:
                        yield target
                        return
        finally:
            self._lock.release()

    def _target(self) -> Path:
        """The file itself: a symlink to it stays one."""
        return Path(os.path.realpath(self._source.write_path()))

    def _read(self, target: Path) -> _Stored:
        try:
            data = target.read_bytes()
        except FileNotFoundError:
            return _Stored(target, {}, None)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise UnreadableConfig(f"{target} cannot be read: {reason}") from None
        try:
            raw, _ = read_raw(data)
        except BrokenFile as broken:
            raise UnreadableConfig(f"{target}: {broken}; repair the file by hand") from None
        return _Stored(target, raw, data)

    def _write(self, stored: _Stored, raw: dict[str, Any]) -> None:
        data = _readable(raw, stored.data)
        try:
            replace_file(stored.target, data)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise ConfigWriteFailed(
                f"the file could not be written: {reason}", where=str(stored.target)
            ) from None


def _readable(raw: dict[str, Any], like: bytes | None) -> bytes:
    """The new content, which the next reader can read for certain (CONF-7)."""
    try:
        data = serialise(raw, like)
        read_raw(data)
    except (BrokenFile, ValueError, RecursionError) as error:
        reason = error.fault.message if isinstance(error, BrokenFile) else type(error).__name__
        fault = ConfigFault(where="mcpServers", message=f"cannot be written as a JSON file: {reason}")
        raise ConfigRejected([fault]) from None
    return data


def _matches(if_match: str, etag: str) -> bool:
    """``If-Match``: ``*`` or a list of ETags; a weak one never matches (RFC 9110, 13.1.1)."""
    return any(candidate.strip() in ("*", etag) for candidate in if_match.split(","))
