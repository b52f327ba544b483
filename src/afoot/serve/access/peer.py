"""`peer_of` names the peer of a connection, by which connections are counted: an address or a local user (S5).

On loopback all users of the machine have one address. `socket_uid` asks the kernel whose socket the other end
is: one question over netlink takes about 25 µs, however many connections there are. Reading `/proc/net/tcp`
would take longer with each of them.
"""

import contextlib
import ipaddress
import socket
import struct

Address = tuple[str, int]

_SOCK_DIAG = 4  # NETLINK_SOCK_DIAG; the numbers below are from linux/inet_diag.h
_BY_FAMILY = 20
_REQUEST = struct.Struct("=IHHII BBBBI")
_UID_OFFSET = 16 + 4 + 48 + 12  # behind the message's head, the state, the id of the socket, three counters
_V6_NETWORK = 64  # bits; one who has an IPv6 address usually has this many of them


def peer_of(remote: Address, local: Address) -> str:
    """The peer whose connections are counted together: `uid:N` on loopback, else an address or a network."""
    host = remote[0].partition("%")[0]
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv6Address):
        address = address.ipv4_mapped or address
    if address.is_loopback:
        uid = socket_uid(remote, local)
        return "loopback" if uid is None else f"uid:{uid}"
    if address.version == 4:
        return str(address)
    return str(ipaddress.ip_network((address, _V6_NETWORK), strict=False))


def socket_uid(source: Address, destination: Address) -> int | None:
    """The user of the socket that is bound to `source` and connected to `destination`; None: unknown."""
    family = socket.AF_INET6 if ":" in source[0] else socket.AF_INET
    try:
        places = [socket.inet_pton(family, one[0]).ljust(16, b"\0") for one in (source, destination)]
    except OSError:
        return None
    ports = struct.pack("!HH", source[1], destination[1])
    any_cookie = struct.pack("=III", 0, 0xFFFF_FFFF, 0xFFFF_FFFF)
    wanted = ports + places[0] + places[1] + any_cookie
    head = _REQUEST.pack(
        16 + 8 + len(wanted), _BY_FAMILY, 1, 1, 0, family, socket.IPPROTO_TCP, 0, 0, 0xFFFF_FFFF
    )
    with contextlib.suppress(OSError, AttributeError):  # another system, or one that forbids it
        with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _SOCK_DIAG) as kernel:
            kernel.setblocking(False)
            kernel.send(head + wanted)
            answer = kernel.recv(4096)  # the kernel has answered when `send` returns
        if len(answer) >= _UID_OFFSET + 4 and struct.unpack_from("=H", answer, 4)[0] == _BY_FAMILY:
            uid: int = struct.unpack_from("=I", answer, _UID_OFFSET)[0]
            return uid
    return None
