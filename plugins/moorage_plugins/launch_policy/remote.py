"""Which URLs a server registered over HTTP may have (LAUNCH-8)."""

import re
import socket
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import unquote, urlsplit

from moorage.contract import LaunchRefused, LaunchRequest
from moorage_plugins.launch_policy.settings import LaunchSettings
from moorage_plugins.launch_policy.sources import has_placeholder

_METADATA_NAMES = frozenset(
    {"metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal",
     "metadata.azure.com", "metadata.azure.internal", "metadata.platformequinix.com", "metadata.packet.net"}
)  # fmt: skip
_METADATA_ADDRESSES = frozenset(
    map(ip_address, ("169.254.169.254", "169.254.170.2", "100.100.100.200", "192.0.0.192", "168.63.129.16",
                     "fd00:ec2::254", "fd20:ce::254"))
)  # fmt: skip
_DOTS = re.compile("[。．｡]")


class UrlRules:
    """A `LaunchValidator`. It asks no name server: a name that resolves to such an address is the business
    of the network (LAUNCH-10)."""

    def __init__(self, settings: LaunchSettings) -> None:
        self._allowed = frozenset(_folded(host) for host in settings.hosts)

    def validate(self, request: LaunchRequest) -> None:
        """Raises `LaunchRefused`."""
        if request.transport == "stdio":
            return
        reason = self._reason(request.url or "")
        if reason is not None:
            raise LaunchRefused(f"server {request.server!r}: url {reason}")

    def _reason(self, url: str) -> str | None:
        if not url:
            return "is missing"
        if any(c.isspace() or not c.isprintable() for c in url) or "\\" in url:
            return "holds a blank, a control character or a backslash"
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port
        except ValueError:
            return "cannot be read"
        if parts.scheme not in ("http", "https"):
            return "must begin with http:// or https://"
        if "@" in parts.netloc:
            return "may carry no user info; put credentials into headers or oauth"
        if has_placeholder(parts.netloc):
            return "must have its host written out, so that it can be judged"
        if not host or port == 0:
            return "has no host" if not host else "has no usable port"
        return self._host(host)

    def _host(self, host: str) -> str | None:
        folded = _folded(host)
        if folded in self._allowed:
            return None
        address = _address(folded)
        if folded in _METADATA_NAMES or address in _METADATA_ADDRESSES:
            return "leads to a cloud metadata service; an operator can allow the host (launch_policy.hosts)"
        if address is not None and (address.is_link_local or address.is_multicast or address.is_unspecified):
            return "leads to a link-local address; an operator can allow the host (launch_policy.hosts)"
        return None


def _folded(host: str) -> str:
    return _DOTS.sub(".", unquote(host)).rstrip(".").lower()


def _address(host: str) -> IPv4Address | IPv6Address | None:
    """The address in any spelling that a resolver takes for one: decimal, octal, hexadecimal, mapped."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        try:
            return IPv4Address(socket.inet_aton(host))
        except (OSError, ValueError):
            return None
    if isinstance(address, IPv6Address):
        mapped = address.ipv4_mapped or address.sixtofour
        if mapped is None and address in _NAT64:
            mapped = IPv4Address(int(address) & 0xFFFFFFFF)
        return mapped or address
    return address


class _Prefix:
    """``64:ff9b::/96``, where IPv4 addresses appear behind a translator."""

    def __contains__(self, address: IPv6Address) -> bool:
        return int(address) >> 32 == int(IPv6Address("64:ff9b::")) >> 32


_NAT64 = _Prefix()
