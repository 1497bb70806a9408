"""Held to what Moorage asks of credential interceptors, on a real store over HTTP."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from moorage.contract import InterceptorSpec, ToolCall
from moorage.testing import InterceptorConformance
from vault import TOKEN, Vault, vault

from moorage_secrets_store.plugin import SECTION, moorage_credential_interceptors
from moorage_secrets_store.section import Section

USERS = ("alice", "bob", "carol", "dave")


class TestSecretsStore(InterceptorConformance):
    store: Vault

    def spec(self) -> InterceptorSpec:
        (spec,) = moorage_credential_interceptors()
        return spec

    def open_source(self) -> AbstractAsyncContextManager[Any]:
        return self._source()

    @asynccontextmanager
    async def _source(self) -> AsyncIterator[None]:
        with vault() as store:
            self.store = store
            store.secrets = {f"users/{user}": {"token": f"secret-of-{user}"} for user in USERS}
            yield

    def break_source(self) -> None:
        self.store.broken = True

    def settings(self) -> Mapping[str, Any]:
        table = {"url": self.store.url, "token": TOKEN, "cache_seconds": 0}
        return {"plugins": {"secrets-store": table}}

    def sections(self) -> Mapping[str, Any]:
        return {SECTION: Section(path="users/{user}")}

    def expects(self, user: str) -> Mapping[str, str]:
        return {"Authorization": f"Bearer secret-of-{user}"}

    def refused(self) -> Sequence[ToolCall]:
        return (self.call("nobody"), self.call(None), self.call(".."))

    def hidden(self) -> Sequence[str]:
        return ("secret-of-alice", TOKEN)
