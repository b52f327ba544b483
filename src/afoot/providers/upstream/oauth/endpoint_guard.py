"""`EndpointGuard` decides where the requests of a login may go; `GuardedTransport` sends them there.

A server names its authorization server itself, and that one names its endpoints. A hostile server could so
lead the gateway to addresses that only the gateway reaches: a service on loopback, a private network, the
metadata service of a cloud (RFC 9728, 7.7; "Server-Side Request Forgery" in the security practices of MCP).
Importing this module imports `httpx2`, which is slow.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx2

Resolve = Callable[[str], Awaitable[Sequence[str]]]  # the addresses of a host

_SHOWN_CHARS: Final = 100  # of an address in an error message
_NAT64: Final = ip_network("64:ff9b::/96")


class UnsafeEndpoint(httpx2.TransportError):
    """A request of a login would go to an address that its server has no business with."""


async def resolve_host(host: str) -> Sequence[str]:
    """Return the addresses of a host; raises httpx2.ConnectError."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise httpx2.ConnectError(f"{host[:_SHOWN_CHARS]}: {error}") from None
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def network_of(address: str) -> str:
    """Return the kind of network that an address belongs to: public, private, loopback, or special."""
    ip = _embedded(ip_address(address.partition("%")[0]))
    if ip.is_loopback:
        return "loopback"
    if ip.is_unspecified or ip.is_link_local or ip.is_multicast or ip.is_reserved:
        return "special"  # 0.0.0.0 means this machine, and 169.254.169.254 the metadata of a cloud
    return "public" if ip.is_global else "private"


class EndpointGuard:
    """Decides for one server: https, and no network but the public ones and the server's own.

    The host of the server itself is allowed, because the gateway goes there anyway, and so are the hosts that
    the settings name in `auth_hosts`. A server on loopback may have its authorization server on loopback, and
    one in a private network may have it in a private network.
    """

    def __init__(self, url: str, auth_hosts: Sequence[str] = (), resolve: Resolve | None = None) -> None:
        self._server = urlsplit(url)
        self._allowed = {host.lower() for host in auth_hosts}
        self._resolve = resolve or resolve_host
        self._own: set[str] | None = None  # networks of the server

    async def check(self, url: str) -> Sequence[str]:
        """Return the addresses to connect to; none if a proxy knows them. Raises UnsafeEndpoint."""
        parts = urlsplit(url)
        host = parts.hostname
        if parts.scheme not in ("http", "https") or not host:
            raise UnsafeEndpoint(f"{_shown(parts)} is no address of a web server")
        is_own = host == self._server.hostname
        addresses = await self._addresses(parts.scheme, host)
        networks = {network_of(one) for one in addresses}
        is_cleartext_fine = networks == {"loopback"} or (is_own and self._server.scheme == "http")
        if parts.scheme != "https" and not is_cleartext_fine:
            raise UnsafeEndpoint(f"{_shown(parts)} is not https")
        if not (is_own or host in self._allowed) and (wrong := networks - await self._reachable()):
            text = (
                f"{_shown(parts)} is not on the public internet ({', '.join(sorted(wrong))}), and the server"
            )
            raise UnsafeEndpoint(f"{text} is not there (auth_hosts in its settings allows a host)")
        return [] if proxy_for(parts.scheme, host) else addresses

    async def _addresses(self, scheme: str, host: str) -> Sequence[str]:
        """Return the addresses of a host; where a proxy resolves names, only what the name itself says."""
        if not proxy_for(scheme, host):
            return await self._resolve(host)
        if host == "localhost" or host.endswith(".localhost"):
            return ["127.0.0.1"]
        try:
            return [str(ip_address(host))]
        except ValueError:
            return []

    async def _reachable(self) -> set[str]:
        """Return the networks that a login to this server may reach."""
        if self._own is None:
            host = self._server.hostname or ""
            try:
                own = {network_of(one) for one in await self._addresses(self._server.scheme, host)}
            except httpx2.ConnectError:
                own = set()
            self._own = {"public", *(own & {"loopback", "private"})}
        return self._own


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Sends requests to checked addresses alone.

    It connects to the very address that was checked: a name could mean another one a moment later.
    """

    def __init__(self, guard: EndpointGuard) -> None:
        self._guard = guard
        self._direct = httpx2.AsyncHTTPTransport()
        self._proxies: dict[str, httpx2.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; raises UnsafeEndpoint, and what any transport raises."""
        url = request.url
        addresses = await self._guard.check(str(url))
        proxy = proxy_for(url.scheme, url.host)
        if proxy:
            through = self._proxies.get(proxy) or httpx2.AsyncHTTPTransport(proxy=proxy)
            self._proxies[proxy] = through
            return await through.handle_async_request(request)
        extensions = {**request.extensions, "sni_hostname": url.raw_host.decode("ascii")}
        for number, address in enumerate(addresses, 1):
            pinned = httpx2.Request(
                request.method,
                url.copy_with(host=address),
                headers=request.headers,  # with the Host of the name
                stream=request.stream,
                extensions=extensions,
            )
            try:
                return await self._direct.handle_async_request(pinned)
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                if number == len(addresses):
                    raise
        raise httpx2.ConnectError(f"{url.host} has no address")

    async def aclose(self) -> None:
        """Close all connections."""
        for one in (self._direct, *self._proxies.values()):
            await one.aclose()


def proxy_for(scheme: str, host: str) -> str:
    """Return the proxy that the environment names for such a request; empty if there is none."""
    if proxy_bypass(host):
        return ""
    proxies = getproxies()
    return proxies.get(scheme) or proxies.get("all") or ""


def _embedded(ip: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """Return the IPv4 address inside an IPv6 one that leads to it; else the address itself."""
    if isinstance(ip, IPv4Address):
        return ip
    if ip in _NAT64:
        return IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None) or ip


def _shown(parts: SplitResult) -> str:
    """Return what is shown of an address: no path, because that may hold secrets, and no user."""
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"[:_SHOWN_CHARS]
