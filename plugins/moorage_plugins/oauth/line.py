"""The line of refresh tokens that grow out of the configured one, shared by replicas.

A refresh token that rotates may be used once, and using an old one can end the whole line. So whoever
renews first takes a lease on the line's row, by compare-and-set; the others wait for what it gets and use
that. The row is encrypted; only the lease in it is readable.
"""

import asyncio
import logging
import secrets
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from moorage.contract import Clock
from moorage_plugins.oauth.model import OAuth
from moorage_plugins.oauth.token import Token, TokenRefused
from moorage_plugins.oauth.vault import Vault

LEASE_SECONDS = 30.0
"""Longer than one request to a token endpoint may take."""
WAIT_SECONDS = 0.1
SAVE_ATTEMPTS = 5
GIVE_UP_SECONDS = LEASE_SECONDS + 10.0

_log = logging.getLogger(__name__)
Fetch = Callable[[str | None], Awaitable[Token]]
LineKey = tuple[str, str | None, str | None]
"""Token URL, client id, configured refresh token."""


class Memos(Protocol):
    """As much of a `MemoRepository` as a line needs."""

    async def get(self, name: str) -> Any: ...

    async def swap(self, name: str, expected: Any, value: Any) -> bool: ...


class MemoryMemos:
    """Without a SQL store: rotated tokens last as long as the process."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._lock = threading.Lock()

    async def get(self, name: str) -> Any:
        return self._values.get(name)

    async def swap(self, name: str, expected: Any, value: Any) -> bool:
        with self._lock:
            if self._values.get(name) != expected:
                return False
            self._values[name] = value
            return True


@dataclass(frozen=True, slots=True)
class _Row:
    raw: Mapping[str, Any] | None
    state: Mapping[str, Any]

    @property
    def leased_until(self) -> float:
        until = self.raw.get("leased_until") if self.raw else None
        return until if isinstance(until, int | float) else 0.0


class RefreshLine:
    """One line of tokens.

    Another configured refresh token begins a line of its own; a changed scope does not, since the old
    refresh token is used up.
    """

    def __init__(self, key: LineKey, memos: Memos, vault: Vault, clock: Clock) -> None:
        self._first = key[2]
        self._memos = memos
        self._vault = vault
        self._clock = clock
        self._name = f"oauth:{vault.name(*key)}"
        self._unsaved: Mapping[str, Any] | None = None

    async def renew(self, block: OAuth, fetch: Fetch, *, rejected: str | None) -> Token:
        """A token for the block, other than ``rejected``: another replica's, or one that ``fetch`` gets.

        ``fetch`` is given the newest refresh token. Raises `TokenRefused`.
        """
        async with asyncio.timeout(GIVE_UP_SECONDS):
            while True:
                row = await self._row()
                theirs = self._usable(block, row, rejected)
                if theirs is not None:
                    return theirs
                if row.leased_until <= self._now():
                    lease = {
                        "lease": secrets.token_hex(8),
                        "leased_until": self._now() + LEASE_SECONDS,
                        "sealed": row.raw.get("sealed") if row.raw else None,
                    }
                    if await self._memos.swap(self._name, row.raw, lease):
                        return await self._renew_leased(block, fetch, row, lease)
                await asyncio.sleep(WAIT_SECONDS)

    async def _renew_leased(self, block: OAuth, fetch: Fetch, row: _Row, lease: Mapping[str, Any]) -> Token:
        newest = row.state.get("refresh_token") or self._first
        try:
            token = await fetch(newest)
        except TokenRefused:
            await self._memos.swap(self._name, lease, {"sealed": lease["sealed"]})
            raise
        state = {
            "refresh_token": token.refresh_token or newest,
            "access_token": token.value,
            "type": token.type,
            "expires_at": self._now() + token.lifetime_seconds,
            "block": block.digest,
        }
        await self._save(lease, state)
        return token

    async def _save(self, lease: Mapping[str, Any], state: Mapping[str, Any]) -> None:
        """Never raises: the token is good, and its refresh token may be the only one that still is."""
        self._unsaved = state
        for attempt in range(SAVE_ATTEMPTS):
            try:
                landed = await self._memos.swap(self._name, lease, {"sealed": self._vault.seal(state)})
            except Exception as error:
                _log.warning("oauth: a new refresh token could not be stored (%s)", type(error).__name__)
                await asyncio.sleep(WAIT_SECONDS * 2**attempt)
                continue
            self._unsaved = None
            if not landed:
                _log.warning("oauth: the lease on a refresh token lapsed while the token endpoint was asked")
            return

    async def _row(self) -> _Row:
        raw = await self._memos.get(self._name)
        raw = raw if isinstance(raw, Mapping) else None
        sealed = raw.get("sealed") if raw else None
        state = self._vault.unseal(sealed)
        if sealed is not None and state is None:
            _log.warning(
                "oauth: a kept refresh token was encrypted with another key; the configured one is used"
            )
        if self._unsaved is not None:
            state = self._unsaved
        return _Row(raw, state if isinstance(state, Mapping) else {})

    def _usable(self, block: OAuth, row: _Row, rejected: str | None) -> Token | None:
        state = row.state
        value, expires_at = state.get("access_token"), state.get("expires_at")
        if not isinstance(value, str) or not isinstance(expires_at, int | float):
            return None
        if state.get("block") != block.digest or value == rejected:
            return None
        left = expires_at - self._now()
        # What is about to expire is not worth taking over: it would be renewed at once.
        if left <= max(1.0, block.refresh_skew_seconds):
            return None
        return Token(value, str(state.get("type")), left)

    def _now(self) -> float:
        return self._clock.now().timestamp()
