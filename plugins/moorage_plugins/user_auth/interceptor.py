"""Writes the calling user's own credential, or denies the call."""

from moorage.contract import CredentialDenied, GatewayContext, Next, Redactor, ToolCall, ToolResult
from moorage_plugins.user_auth.model import UserAuth


class UserAuthInterceptor:
    """Rewrites the configured header on every call (CRED-4).

    On background calls the principal is the task's owner (CRED-7). A value that HTTP cannot carry is denied
    whatever ``on_missing`` says.
    """

    def __init__(self, context: GatewayContext) -> None:
        self._context = context

    async def __call__(self, call: ToolCall, follow: Next, /) -> ToolResult:
        """Raises `CredentialDenied` for a user without a value, unless ``on_missing`` is ``passthrough``."""
        block = call.server.sections["user_auth"]
        assert isinstance(block, UserAuth)
        value = block.users.get(call.principal.user_id) if call.principal else None
        source = f"user_auth of server {call.server.name!r}"
        if not value:
            if block.on_missing == "passthrough":
                return await follow(call)
            raise CredentialDenied(f"{source}: no value of header {block.header!r} for the calling user")
        if self._context.has(Redactor):
            self._context.service(Redactor).register(value)
        return await follow(call.with_header(block.header, value, source=source))
