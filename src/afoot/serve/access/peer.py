"""`peer_of` names the peer by which a connection is counted: an address, or a user of this machine (S5).

On loopback all users of the machine have one address. `socket_uid` asks the kernel whose socket the other end
is: one question over netlink takes about 25 µs, however many connections there are. Reading `/proc/net/tcp`
would take longer with each of them.
"""

import atexit
import ipaddress
import socket
import struct
from functools import lru_cache
from itertools import count

Address = tuple[str, int]

LOOPBACK = "loopback"
_SOCK_DIAG = 4  # NETLINK_SOCK_DIAG; the numbers and layouts are those of linux/sock_diag.h and inet_diag.h
_BY_FAMILY = 20
_HEAD = struct.Struct("=IHHII")  # length, type, flags, number, port
_WANTED = struct.Struct("=BBBBI")  # family, protocol, extensions, padding, states
_ANY_COOKIE = struct.pack("=III", 0, 0xFFFF_FFFF, 0xFFFF_FFFF)
_ALL_STATES = 0xFFFF_FFFF
_UID_OFFSET = 16 + 4 + 48 + 12  # behind the head, the state, the id of the socket, and three counters
_V6_NETWORK = 64  # bits; one who has an IPv6 address usually has all that begin with these

_numbers = count(1)


def peer_of(remote: Address) -> str:
    """The peer whose connections are counted together: an address, a network of IPv6, or LOOPBACK."""
    return _peer_of_host(remote[0])


def socket_uid(source: Address, destination: Address) -> int | None:
    """The user of the socket that is bound to `source` and connected to `destination`; None: unknown."""
    family = socket.AF_INET6 if ":" in source[0] else socket.AF_INET
    number = next(_numbers) & 0x7FFF_FFFF
    try:
        places = [socket.inet_pton(family, one[0]).ljust(16, b"\0") for one in (source, destination)]
        kernel = _kernel()
    except (OSError, AttributeError):  # no address, or another system, or one that forbids it
        return None
    ports = struct.pack("!HH", source[1], destination[1])
    wanted = _WANTED.pack(family, socket.IPPROTO_TCP, 0, 0, _ALL_STATES)
    body = wanted + ports + places[0] + places[1] + _ANY_COOKIE
    try:
        kernel.send(_HEAD.pack(_HEAD.size + len(body), _BY_FAMILY, 1, number, 0) + body)
        answer = kernel.recv(4096)  # the kernel has answered when `send` returns
        _, kind, _, of, _ = _HEAD.unpack_from(answer)
    except (OSError, struct.error):
        kernel.close()
        _kernel.cache_clear()
        return None
    if kind != _BY_FAMILY or of != number or len(answer) < _UID_OFFSET + 4:
        return None
    uid: int = struct.unpack_from("=I", answer, _UID_OFFSET)[0]
    return uid


@lru_cache(1024)
def _peer_of_host(host: str) -> str:
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv6Address):
        address = address.ipv4_mapped or address
    if address.is_loopback:
        return LOOPBACK
    if address.version == 4:
        return str(address)
    return str(ipaddress.ip_network((address, _V6_NETWORK), strict=False))


@lru_cache(1)
def _kernel() -> socket.socket:
    """The socket over which the kernel is asked, opened once."""
    opened = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _SOCK_DIAG)
    opened.setblocking(False)
    atexit.register(opened.close)
    return opened
