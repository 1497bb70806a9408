"""One request to a token endpoint, bounded in time and size."""

import asyncio
import json
import ssl
import urllib.request
from collections.abc import Mapping
from urllib.parse import urlencode, urlsplit

import httpx

from moorage_plugins.oauth.token import TokenRefused

TIMEOUT_SECONDS = 15.0
MAX_REPLY_BYTES = 65_536
_KNOWN_CODES = frozenset(
    {
        "invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type",
        "invalid_scope", "invalid_target", "access_denied", "server_error", "temporarily_unavailable",
    }
)  # fmt: skip


async def ask(token_url: str, form: Mapping[str, str]) -> object:
    """The JSON of the endpoint's good reply.

    Raises `TokenRefused` otherwise, a redirect included: the form holds credentials and follows none.
    """
    # The transport, not a client: a client logs the URL, and a query may hold a secret.
    try:
        async with (
            asyncio.timeout(TIMEOUT_SECONDS),
            httpx.AsyncHTTPTransport(proxy=_proxy(token_url)) as http,
        ):
            request = httpx.Request(
                "POST",
                token_url,
                content=urlencode(form).encode(),
                headers={
                    "Content-Type": "application/x-www-form-urlencoded",
                    "Accept": "application/json",
                    "User-Agent": "moorage",
                },
                extensions={"timeout": httpx.Timeout(TIMEOUT_SECONDS).as_dict()},
            )
            response = await http.handle_async_request(request)
            try:
                return _judged(response.status_code, await _body(response))
            finally:
                await response.aclose()
    except TimeoutError:
        raise TokenRefused(f"the token endpoint took more than {TIMEOUT_SECONDS:g} seconds") from None
    except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, ssl.SSLError, OSError, ValueError) as error:
        raise TokenRefused(f"the token endpoint could not be asked ({type(error).__name__})") from None


async def _body(response: httpx.Response) -> bytes:
    parts: list[bytes] = []
    size = 0
    # Decoded pieces are counted, so that a small compressed body cannot become a large one.
    async for part in response.aiter_bytes(8_192):
        size += len(part)
        if size > MAX_REPLY_BYTES:
            raise TokenRefused(f"the token endpoint's reply has more than {MAX_REPLY_BYTES} bytes")
        parts.append(part)
    return b"".join(parts)


def _judged(status: int, body: bytes) -> object:
    try:
        reply = json.loads(body)
    except (ValueError, RecursionError):
        reply = None
    if 200 <= status < 300:
        if reply is None:
            raise TokenRefused("the token endpoint's reply is no JSON")
        return reply
    code = reply.get("error") if isinstance(reply, dict) else None
    known = code if isinstance(code, str) and code in _KNOWN_CODES else None
    suffix = f" ({known})" if known else ""
    raise TokenRefused(f"the token endpoint answered {status}{suffix}", code=known)


def _proxy(url: str) -> httpx.Proxy | None:
    parts = urlsplit(url)
    host = parts.hostname or ""
    found = urllib.request.getproxies()
    address = found.get(parts.scheme) or found.get("all")
    if not address or urllib.request.proxy_bypass(host):
        return None
    return httpx.Proxy(address if "://" in address else f"http://{address}")
