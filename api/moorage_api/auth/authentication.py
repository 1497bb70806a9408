"""From a request's headers to a principal. Nothing else of a request says who calls (RUN-9)."""

import asyncio
import hmac
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from moorage.accounts import Account
from moorage.contract.errors import AuthenticationFailed, PluginError, PluginTimeout
from moorage.contract.hosting import Authenticator, AuthRequest
from moorage.contract.identity import Principal
from moorage.contract.stores import KeyRepository
from moorage.process_exit import EXITS
from moorage_api.auth.keys import key_hash

log = logging.getLogger(__name__)

ADMIN = Principal("admin", frozenset({"admin", "user"}))
"""Who `MOORAGE_ADMIN_KEY` and the generated admin key stand for."""
NOBODY_ASKED = Principal("local", frozenset({"admin", "user"}))
"""Everybody, where authentication is switched off (loopback only)."""

AUTHENTICATOR_TIMEOUT_SECONDS = 10.0
MISSING = "Give an API key: 'Authorization: Bearer <key>' or 'X-Api-Key: <key>'."
WRONG = "The credentials are not valid."


@dataclass(frozen=True, slots=True)
class NamedAuthenticator:
    """An authenticator and the plugin that contributed it."""

    plugin: str
    authenticator: Authenticator
    account: Account = field(default_factory=Account, compare=False)

    async def ask(self, request: AuthRequest) -> Principal | None:
        """Under a deadline; one that fails to answer lets nobody in (PLUG-7).

        Raises `AuthenticationFailed`, and `PluginError` for what it does wrong itself.
        """
        try:
            return await self._ask(request)
        except PluginError as error:
            self.account.told(_fault(error))
            raise

    async def _ask(self, request: AuthRequest) -> Principal | None:
        try:
            with self.account.call():
                async with asyncio.timeout(AUTHENTICATOR_TIMEOUT_SECONDS):
                    principal = await self.authenticator.authenticate(request)
        except (AuthenticationFailed, *EXITS):
            raise
        except TimeoutError as error:
            raise PluginTimeout("its authenticator did not answer in time", plugin=self.plugin) from error
        except BaseException as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise
            raise PluginError("its authenticator failed", plugin=self.plugin) from error
        if principal is not None and not isinstance(principal, Principal):
            raise PluginError("its authenticator answered with no principal", plugin=self.plugin)
        return principal


@dataclass(frozen=True, slots=True)
class Authentication:
    """Asks the keys first, then the authenticators in their order."""

    keys: KeyRepository | None
    authenticators: Sequence[NamedAuthenticator] = ()
    admin_key: str | None = field(default=None, repr=False)
    enabled: bool = True

    async def principal(self, headers: Mapping[str, str], client_host: str | None) -> Principal:
        """Raises `AuthenticationFailed` where there are no valid credentials."""
        if not self.enabled:
            return NOBODY_ASKED
        presented = presented_keys(headers)
        for key in presented:
            if (principal := await self._of_key(key)) is not None:
                return principal
        request = AuthRequest(headers=headers, client_host=client_host)
        for named in self.authenticators:
            if (principal := await named.ask(request)) is not None:
                return principal
        raise AuthenticationFailed(WRONG if presented else MISSING)

    async def _of_key(self, key: str) -> Principal | None:
        digest = key_hash(key)
        if self.admin_key is not None and hmac.compare_digest(digest, key_hash(self.admin_key)):
            return ADMIN
        if self.keys is None:
            return None
        record = await self.keys.find(digest)
        if record is None or record.revoked_at is not None:
            return None
        return Principal(record.user_id, record.roles)


def _fault(error: PluginError) -> str:
    # Without the text of the cause, which may quote the credentials.
    cause = error.__cause__
    return f"{error}: {type(cause).__name__}" if cause is not None else str(error)


def presented_keys(headers: Mapping[str, str]) -> tuple[str, ...]:
    """The key candidates of a request; at most one a header, so that nobody can try many at once."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    bearer = token.strip() if scheme.lower() == "bearer" else ""
    return tuple(key for key in (bearer, headers.get("x-api-key", "").strip()) if key)
