"""Telling a run's ``webhook`` of its end.

The body is the run as `GET …/runs/{run_id}` shows it, with the final ``values`` and ``webhook_sent_at``. A
webhook is the caller's own address, so it gets nothing that the caller could not read. It cannot be used to
reach the machine's own metadata: link-local addresses are refused, and redirects are not followed. Loopback
and private networks are allowed, since that is where receivers are as a rule.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any

import httpx
import msgspec

from moorage.contract.errors import NotFound
from moorage.contract.identity import Principal
from moorage.contract.stores import RunRecord
from moorage.runs.redaction import hide_run
from moorage_api.encoding import encode
from moorage_api.views import run_view
from moorage_api.wiring import Runtime

log = logging.getLogger(__name__)

TIMEOUT_SECONDS = 10.0
PAUSES_SECONDS = (1.0, 5.0)
"""Between the attempts, of which there is one more than pauses."""
_METADATA = frozenset(map(ip_address, ("169.254.169.254", "fd00:ec2::254", "100.100.100.200", "192.0.0.192")))
_EMBEDDING = tuple(map(ip_network, ("::/96", "64:ff9b::/96")))
"""The last 32 bits of these are an IPv4 address, and translators (NAT64) send there."""


class RunWebhooks:
    """Called with every run that ended here; answers at once and delivers beside it."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._pauses = PAUSES_SECONDS

    async def __call__(self, run: RunRecord) -> None:
        url = run.kwargs.get("webhook")
        if isinstance(url, str):
            self._runtime.aside(self._tell(url, run))

    async def _tell(self, url: str, run: RunRecord) -> None:
        body = encode(await self._document(run))
        failure = ""
        async with httpx.AsyncClient(timeout=TIMEOUT_SECONDS, follow_redirects=False) as http:
            for pause in (*self._pauses, None):
                failure = await _attempt(http, url, body)
                if not failure or pause is None or await self._stops_within(pause):
                    break
        if failure:
            log.warning("the webhook of run %s was not told: %s", run.run_id, failure)

    async def _document(self, run: RunRecord) -> Mapping[str, Any]:
        values = None
        with contextlib.suppress(NotFound):  # deleted since: its end is told all the same
            runs = self._runtime.gateway.runs
            values = (await runs.join(Principal(run.user_id), run.thread_id, run.run_id)).values
        return {
            **msgspec.structs.asdict(run_view(hide_run(run))),
            "values": values,
            "webhook_sent_at": datetime.now(UTC),
        }

    async def _stops_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._runtime.stopping.wait()
        except TimeoutError:
            return False
        return True


async def _attempt(http: httpx.AsyncClient, url: str, body: bytes) -> str:
    """Post once; returns what went wrong, in words that do not quote the address."""
    try:
        answer = await http.send(await _request(http, httpx.URL(url), body))
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        return type(error).__name__ if not isinstance(error, ForbiddenAddress) else str(error)
    return "" if answer.is_success else f"it answered {answer.status_code}"


class ForbiddenAddress(ValueError):
    """The host is, or resolves to, an address that webhooks may not reach."""


async def _request(http: httpx.AsyncClient, url: httpx.URL, body: bytes) -> httpx.Request:
    """A request to the very address that was judged, so that a second look-up cannot change it."""
    port = url.port or (443 if url.scheme == "https" else 80)
    found = await asyncio.get_running_loop().getaddrinfo(url.host, port, type=socket.SOCK_STREAM)
    addresses = [ip_address(str(info[4][0]).partition("%")[0]) for info in found]
    for address in addresses:
        if is_forbidden(address):
            raise ForbiddenAddress("its host is a link-local or metadata address")
    return http.build_request(
        "POST",
        url.copy_with(host=str(addresses[0])),
        content=body,
        headers={"Host": url.netloc.decode("ascii"), "Content-Type": "application/json"},
        extensions={"sni_hostname": url.host},
    )


def is_forbidden(address: IPv4Address | IPv6Address) -> bool:
    """Link-local and metadata addresses, also where an IPv6 address wraps an IPv4 one."""
    return any(
        one.is_link_local or one in _METADATA or one.is_multicast or one.is_unspecified
        for one in (address, *_wrapped(address))
    )


def _wrapped(address: IPv4Address | IPv6Address) -> Iterator[IPv4Address]:
    if not isinstance(address, IPv6Address):
        return
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    if address.sixtofour is not None:
        yield address.sixtofour
    if any(address in network for network in _EMBEDDING) and int(address) > 1:
        yield IPv4Address(int(address) & 0xFFFF_FFFF)
