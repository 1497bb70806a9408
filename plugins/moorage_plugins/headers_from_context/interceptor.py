"""Writes headers from the run's secrets, or denies the call."""

from moorage.contract import CredentialDenied, GatewayContext, Next, Redactor, ToolCall, ToolResult
from moorage_plugins.headers_from_context.model import HeadersFromContext


class HeadersFromContextInterceptor:
    """Resolves the mapped keys on every call (CRED-5).

    A value that is no text, or that HTTP cannot carry, is denied whatever ``on_missing`` says.
    """

    def __init__(self, context: GatewayContext) -> None:
        self._context = context

    async def __call__(self, call: ToolCall, follow: Next, /) -> ToolResult:
        """Raises `CredentialDenied` naming the missing key, unless ``on_missing`` is ``passthrough``."""
        block = call.server.sections["headers_from_context"]
        assert isinstance(block, HeadersFromContext)
        for header, key in block.headers.items():
            source = f"headers_from_context of server {call.server.name!r}, key {key!r}"
            value = call.secrets.get(key)
            if value is None or value == "":
                if block.on_missing == "passthrough":
                    continue
                raise CredentialDenied(f"{source}: the run's config.context.secrets has no such value")
            if not isinstance(value, str):
                raise CredentialDenied(f"{source}: the value is no text")
            if self._context.has(Redactor):
                self._context.service(Redactor).register(value, lasting=False)
            call = call.with_header(header, value, source=source)
        return await follow(call)
