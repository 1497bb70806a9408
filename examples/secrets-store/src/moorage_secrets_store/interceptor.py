"""Writes a header from the secrets store, or denies the call before anything is sent."""

from urllib.parse import quote

from moorage.contract import CredentialDenied, GatewayContext, Next, Redactor, ToolCall, ToolResult

from moorage_secrets_store.section import Section, read
from moorage_secrets_store.store import NoSecret, SecretsStore

SECTION = "secrets_store"
PLUGIN = "secrets-store"


class SecretsStoreInterceptor:
    """A credential interceptor. Outside of runs the principal is the task's owner, so polls work the same."""

    def __init__(self, gateway: GatewayContext) -> None:
        self._gateway = gateway
        options = gateway.settings.get("plugins", {}).get(PLUGIN)
        self._store = None if options is None else SecretsStore(read(options), gateway.clock)

    async def aclose(self) -> None:
        if self._store is not None:
            await self._store.aclose()

    async def __call__(self, call: ToolCall, follow: Next, /) -> ToolResult:
        section = call.server.sections[SECTION]
        assert isinstance(section, Section)
        source = f"{SECTION} of server {call.server.name!r}"
        if self._store is None:
            raise CredentialDenied(f"{source}: no store is configured (plugins.{PLUGIN})")
        path = self._path(section, call, source)
        try:
            value = await self._store.read(path, section.field)
        except NoSecret as error:
            raise CredentialDenied(f"{source}: no value of header {section.header!r}: {error}") from None
        if self._gateway.has(Redactor):
            self._gateway.service(Redactor).register(value)
        text = f"{section.scheme} {value}" if section.scheme else value
        return await follow(call.with_header(section.header, text, source=source))

    def _path(self, section: Section, call: ToolCall, source: str) -> str:
        if "{user}" not in section.path:
            return section.path
        user = call.principal.user_id if call.principal else ""
        if not user or user in (".", ".."):
            raise CredentialDenied(f"{source}: nobody who could have a secret is calling")
        return section.path.replace("{user}", quote(user, safe=""))
