"""Sends the server's own token, and renews it once when the server refuses it."""

from collections.abc import Awaitable

from moorage.contract import CredentialDenied, Next, ServerUnavailable, ToolCall, ToolResult
from moorage_plugins.oauth.model import OAuth
from moorage_plugins.oauth.service import TokenService
from moorage_plugins.oauth.token import Token, TokenRefused


class OAuthInterceptor:
    """Writes ``Authorization: <type> <token>`` (CRED-3).

    A 401 means that the server did nothing, so that one retry with a new token is safe even for a call
    with effects.
    """

    def __init__(self, tokens: TokenService) -> None:
        self._tokens = tokens

    async def __call__(self, call: ToolCall, follow: Next, /) -> ToolResult:
        """Raises `CredentialDenied` where no token can be had; the text holds no secret."""
        block = call.server.sections["oauth"]
        assert isinstance(block, OAuth)
        token = await self._had(call, self._tokens.get(block))
        assert token is not None
        try:
            result = await follow(_with(call, token))
        except ServerUnavailable as error:
            if error.http_status != 401:
                raise
            renewed = await self._had(call, self._tokens.renewed(block, rejected=token))
            if renewed is None:
                raise
            result = await follow(_with(call, renewed))
            token = renewed
        self._tokens.accepted(block, token)
        return result

    async def _had(self, call: ToolCall, token: Awaitable[Token | None]) -> Token | None:
        try:
            return await token
        except TokenRefused as refused:
            raise CredentialDenied(f"oauth of server {call.server.name!r}: {refused}") from None


def _with(call: ToolCall, token: Token) -> ToolCall:
    return call.with_header("Authorization", token.header, source=f"oauth of server {call.server.name!r}")
