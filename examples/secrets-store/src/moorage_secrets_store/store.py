"""The secrets store: one request a secret however many calls wait for it, and a cache that forgets."""

import asyncio
from dataclasses import dataclass
from urllib.parse import quote

import httpx
from moorage.contract import Clock

from moorage_secrets_store.section import Settings


class NoSecret(Exception):
    """The store has none, or cannot be asked. The message quotes no secret and no reply."""


@dataclass(slots=True)
class _Kept:
    value: str
    until: float


class SecretsStore:
    """Reads secrets over HTTP."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._client = httpx.AsyncClient(timeout=settings.timeout_seconds, follow_redirects=False)
        self._kept: dict[tuple[str, str], _Kept] = {}
        self._asking: dict[tuple[str, str], asyncio.Task[str]] = {}

    async def aclose(self) -> None:
        for task in self._asking.values():
            task.cancel()
        await asyncio.gather(*self._asking.values(), return_exceptions=True)
        await self._client.aclose()

    async def read(self, path: str, field: str) -> str:
        """Raises `NoSecret`."""
        key = (path, field)
        kept = self._kept.get(key)
        if kept is not None and self._clock.monotonic() < kept.until:
            return kept.value
        task = self._asking.get(key)
        if task is None:
            task = self._asking[key] = asyncio.create_task(self._fetch(path, field))
            task.add_done_callback(lambda done: self._done(key, done))
        # A caller who leaves must not take the answer from the others.
        return await asyncio.shield(task)

    def _done(self, key: tuple[str, str], task: "asyncio.Task[str]") -> None:
        self._asking.pop(key, None)
        self._kept.pop(key, None)
        if not task.cancelled() and task.exception() is None:
            until = self._clock.monotonic() + self._settings.cache_seconds
            self._kept[key] = _Kept(task.result(), until)

    async def _fetch(self, path: str, field: str) -> str:
        settings = self._settings
        url = f"{settings.url.rstrip('/')}/v1/{quote(settings.mount)}/data/{path}"
        try:
            answer = await self._client.get(url, headers={"X-Vault-Token": settings.token.get_secret_value()})
        except httpx.HTTPError as error:
            raise NoSecret(f"the store cannot be reached ({type(error).__name__})") from None
        if answer.status_code == 404:
            raise NoSecret("the store has no such secret")
        if answer.status_code != 200:
            raise NoSecret(f"the store answered with status {answer.status_code}")
        try:
            value = answer.json()["data"]["data"][field]
        except (ValueError, KeyError, TypeError):
            raise NoSecret(f"the secret has no field {field!r}") from None
        if not isinstance(value, str) or not value:
            raise NoSecret(f"field {field!r} of the secret is no text")
        return value
