"""The gateway's tokens: one fetch however many wait, in whatever event loop (CRED-3)."""

import asyncio
import logging
import os
import threading
from collections import OrderedDict
from collections.abc import AsyncIterator, Coroutine
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from moorage.contract import GatewayContext, MoorageError, Redactor
from moorage_plugins.oauth import endpoint
from moorage_plugins.oauth.line import Fetch, LineKey, MemoryMemos, Memos, RefreshLine
from moorage_plugins.oauth.model import OAuth
from moorage_plugins.oauth.token import SHARED_FOR_SECONDS, Token, TokenRefused, parse_reply
from moorage_plugins.oauth.vault import KEY_VARIABLE, Vault

T = TypeVar("T")

KEPT_BLOCKS = 512
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0
FORCED_EVERY_SECONDS = 30.0
"""How often a token that no server ever accepted may be renewed because of a 401."""
CLOSE_SECONDS = 5.0

_log = logging.getLogger(__name__)
_Flight = Future["Token | TokenRefused"]


@dataclass(slots=True)
class _Entry:
    """What is known of one block. Guarded by the service's lock."""

    token: Token | None = None
    refresh_at: float = 0.0
    expires_at: float = 0.0
    accepted: bool = False
    """A server took this token."""
    suspect: str | None = None
    """The token's value, where a server refused it."""
    forced_at: float | None = None
    flight: _Flight | None = None
    failure: TokenRefused | None = None
    failures: int = 0
    retry_at: float = 0.0


class TokenService:
    """Tokens by OAuth block. Usable from every thread and event loop.

    A fetch runs in a thread and an event loop of its own, so that no caller's cancellation or closed loop
    ends it for the others. A failed one is not repeated before a pause has passed.
    """

    def __init__(self, context: GatewayContext) -> None:
        self._context = context
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._home_loop: asyncio.AbstractEventLoop | None = None
        self._memory = MemoryMemos()
        self._lines: dict[LineKey, RefreshLine] = {}
        self._vault: Vault | None = None
        self._closed = False

    @classmethod
    def of(cls, context: GatewayContext) -> "TokenService":
        """The one of this gateway."""
        if not context.has(cls):
            context.provide(cls, cls(context))
        return context.service(cls)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """While the gateway runs; on exit fetches under way may store what they got."""
        self._home_loop = asyncio.get_running_loop()
        try:
            yield
        finally:
            with self._lock:
                self._closed = True
                flights = [e.flight for e in self._entries.values() if e.flight is not None]
            if flights:
                await asyncio.wait([asyncio.wrap_future(f) for f in flights], timeout=CLOSE_SECONDS)
            self._home_loop = None

    async def get(self, block: OAuth) -> Token:
        """A token that has not expired. Raises `TokenRefused`."""
        token = self._present_or_flight(block, None)
        return await _landed(token) if isinstance(token, Future) else token

    async def renewed(self, block: OAuth, *, rejected: Token) -> Token | None:
        """Another token than the one that a server refused with 401; None where another try is no use.

        Raises `TokenRefused`.
        """
        now = self._context.clock.monotonic()
        with self._lock:
            entry = self._entry(block)
            if entry.token is not None and entry.token.value == rejected.value and entry.flight is None:
                lately = entry.forced_at is not None and now < entry.forced_at + FORCED_EVERY_SECONDS
                if lately and not entry.accepted:
                    return None
                entry.forced_at = now
                entry.suspect = rejected.value
        token = self._present_or_flight(block, rejected.value)
        token = await _landed(token) if isinstance(token, Future) else token
        return token if token.value != rejected.value else None

    def accepted(self, block: OAuth, token: Token) -> None:
        """A server took the token."""
        with self._lock:
            entry = self._entry(block)
            if entry.token is not None and entry.token.value == token.value:
                entry.accepted = True

    def _entry(self, block: OAuth) -> _Entry:
        entry = self._entries.get(block.digest)
        if entry is None:
            entry = self._entries[block.digest] = _Entry()
            while len(self._entries) > KEPT_BLOCKS:
                self._entries.popitem(last=False)
        self._entries.move_to_end(block.digest)
        return entry

    def _present_or_flight(self, block: OAuth, rejected: str | None) -> "Token | _Flight":
        now = self._context.clock.monotonic()
        with self._lock:
            entry = self._entry(block)
            token = entry.token if now < entry.expires_at else None
            if token is not None and token.value in (rejected, entry.suspect):
                token = None
            if token is not None and now < entry.refresh_at:
                return token
            if entry.flight is not None:
                return entry.flight
            if entry.failure is not None and now < entry.retry_at:
                if token is not None:
                    return token
                raise TokenRefused(str(entry.failure), code=entry.failure.code)
            if self._closed:
                raise TokenRefused("the gateway is shutting down")
            flight = entry.flight = Future()
        # Started outside the lock; a daemon, since no hung token endpoint may keep the process alive.
        threading.Thread(
            target=self._fly, args=(block, entry, flight, token), name="moorage-oauth", daemon=True
        ).start()
        return flight

    def _fly(self, block: OAuth, entry: _Entry, flight: _Flight, fallback: Token | None) -> None:
        try:
            outcome = asyncio.run(self._renewed_into(block, entry, fallback))
        except BaseException as error:
            outcome = TokenRefused(f"renewing the token failed: {type(error).__name__}")
        with self._lock:
            entry.suspect = None
            entry.flight = None
        flight.set_result(outcome)

    async def _renewed_into(
        self, block: OAuth, entry: _Entry, fallback: Token | None
    ) -> "Token | TokenRefused":
        clock = self._context.clock
        asked_at = clock.monotonic()

        async def fetch(refresh_token: str | None) -> Token:
            nonlocal asked_at
            asked_at = clock.monotonic()
            token = parse_reply(block, await endpoint.ask(block.token_url, block.form(refresh_token)))
            self._make_known(token.value, token.refresh_token)
            return token

        self._make_known(*block.secrets(), lasting=True)
        try:
            token = await self._renew(block, entry.suspect, fetch)
        except TokenRefused as refused:
            return self._failed(entry, refused, fallback)
        except Exception as error:
            # Of what others raise only our own errors are known to quote no secret.
            why = str(error) if isinstance(error, MoorageError) else type(error).__name__
            return self._failed(entry, TokenRefused(f"renewing the token failed: {why}"), fallback)
        now = clock.monotonic()
        counted_from = asked_at if token.lifetime_seconds > SHARED_FOR_SECONDS else now
        skew = min(block.refresh_skew_seconds, token.lifetime_seconds / 2)
        with self._lock:
            entry.token = token
            entry.expires_at = counted_from + token.lifetime_seconds
            entry.refresh_at = entry.expires_at - skew
            entry.accepted = False
            entry.failure, entry.failures = None, 0
        return token

    def _failed(self, entry: _Entry, refused: TokenRefused, fallback: Token | None) -> "Token | TokenRefused":
        now = self._context.clock.monotonic()
        with self._lock:
            entry.failure = refused
            pause = FIRST_PAUSE_SECONDS * 2.0 ** min(entry.failures, 10)
            entry.retry_at = now + min(pause, LONGEST_PAUSE_SECONDS)
            entry.failures += 1
            if fallback is not None and now < entry.expires_at:
                return fallback  # it was to be renewed early, and is good for a little longer
        _log.warning("oauth: %s", refused)
        return refused

    async def _renew(self, block: OAuth, rejected: str | None, fetch: Fetch) -> Token:
        if block.grant_type == "client_credentials":
            return await fetch(None)
        return await self._line(block).renew(block, fetch, rejected=rejected)

    def _line(self, block: OAuth) -> RefreshLine:
        key = (block.token_url, block.client_id, block.refresh_token)
        with self._lock:
            vault = self._opened_vault()
            line = self._lines.get(key)
            if line is None:
                line = self._lines[key] = RefreshLine(key, self._memos(), vault, self._context.clock)
            return line

    def _memos(self) -> Memos:
        store = self._context.store
        if store is None or not store.durable:
            return self._memory
        return _AtHome(store.memos, self._home_loop)

    def _opened_vault(self) -> Vault:
        if self._vault is None:
            context = self._context
            if context.store is None or not context.store.durable:
                self._vault = Vault(os.urandom(32))
            else:
                self._vault = Vault.open(context.home)
                if context.database_url.startswith("postgres") and not os.environ.get(KEY_VARIABLE):
                    _log.warning(
                        "oauth: refresh tokens are encrypted with a key file of this replica; "
                        "set %s to the same value on all replicas that share the database",
                        KEY_VARIABLE,
                    )
        return self._vault

    def _make_known(self, *secrets: str | None, lasting: bool = False) -> None:
        if self._context.has(Redactor):
            redactor = self._context.service(Redactor)
            for secret in secrets:
                if secret:
                    redactor.register(secret, lasting=lasting)


class _AtHome:
    """Memos of a store that belongs to the gateway's event loop, used from another one."""

    def __init__(self, memos: Memos, loop: asyncio.AbstractEventLoop | None) -> None:
        self._memos = memos
        self._loop = loop

    async def get(self, name: str) -> Any:
        return await self._there(self._memos.get(name))

    async def swap(self, name: str, expected: Any, value: Any) -> bool:
        return await self._there(self._memos.swap(name, expected, value))

    async def _there(self, work: Coroutine[Any, Any, T]) -> T:
        if self._loop is None:
            return await work
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))


async def _landed(flight: _Flight) -> Token:
    # Shielded: a cancelled waiter must not cancel the flight that others wait for.
    outcome = await asyncio.shield(asyncio.wrap_future(flight))
    if isinstance(outcome, TokenRefused):
        raise TokenRefused(str(outcome), code=outcome.code)
    return outcome
