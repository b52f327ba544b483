"""`peer_of` names the peer by which a connection is counted: an address, or a user of this machine (S5).

On loopback all users of the machine have one address. `socket_uid` asks the kernel whose socket the other end
is: one question over netlink takes about 25 µs, however many connections there are. Reading `/proc/net/tcp`
would take longer with each of them, and is done only where netlink is not to be had.

A server asks once for each connection, and leaves the answer in the `state` of every scope (`PEER`). By that,
`is_own_user` and `is_other_user` tell the programs of the gateway's user from those of others (S6).
"""

import atexit
import ipaddress
import os
import socket
import struct
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any

Address = tuple[str, int]

LOOPBACK = "loopback"  # also: a peer on this machine whose user is not known
PEER = "afoot.peer"  # the key of the peer in the state of a scope
_UID = "uid:"
OWN_PEERS = frozenset(("", f"{_UID}0", f"{_UID}{os.geteuid()}"))
_NO_STATE: dict[str, str] = {}

_SOCK_DIAG = 4  # NETLINK_SOCK_DIAG; the numbers and layouts are those of linux/sock_diag.h and inet_diag.h
_BY_FAMILY = 20
_HEAD = struct.Struct("=IHHII")  # length, type, flags, number, port
_WANTED = struct.Struct("=BBBBI")  # family, protocol, extensions, padding, states
_ANY_COOKIE = struct.pack("=III", 0, 0xFFFF_FFFF, 0xFFFF_FFFF)
_ALL_STATES = 0xFFFF_FFFF
_STATE_OFFSET = 16 + 1  # behind the head and the family
_OWNER = struct.Struct("=II")  # user, inode
_OWNER_OFFSET = 16 + 4 + 48 + 12  # behind the head, the state, the id of the socket, and three counters
_LISTENING = 10  # the state of a socket that the kernel names where no connection fits
_V6_NETWORK = 64  # bits; one who has an IPv6 address usually has all that begin with these

_numbers = count(1)


def is_own_user(scope: Mapping[str, Any]) -> bool:
    """Whether a request comes from a program of our own user or of root, who may read our secrets anyway.

    A scope without a peer is not from a socket: somebody in this process made it.
    """
    return peer_name(scope) in OWN_PEERS


def is_other_user(scope: Mapping[str, Any]) -> bool:
    """Whether a request comes for certain from a program of another user of this machine."""
    peer = peer_name(scope)
    return peer.startswith(_UID) and peer not in OWN_PEERS


def peer_name(scope: Mapping[str, Any]) -> str:
    """The peer of a request, as `peer_of` named it; empty if it is not from a socket."""
    peer: str = scope.get("state", _NO_STATE).get(PEER, "")
    return peer


def user_or_peer(remote: Address, local: Address) -> str:
    """The peer of a connection; on loopback `uid:N`, or LOOPBACK where the kernel does not tell the user."""
    peer = peer_of(remote)
    uid = socket_uid(remote, local) if peer == LOOPBACK else None
    return peer if uid is None else f"{_UID}{uid}"


def peer_of(remote: Address) -> str:
    """The peer whose connections are counted together: an address, a network of IPv6, or LOOPBACK."""
    return _peer_of_host(remote[0])


def socket_uid(source: Address, destination: Address) -> int | None:
    """The user of the socket that is bound to `source` and connected to `destination`; None: unknown.

    Unknown is also the user of a socket that was closed: it has no inode any more, and the kernel names root.
    Anybody could else send a request, close at once, and be taken for root.
    """
    family = socket.AF_INET6 if ":" in source[0] else socket.AF_INET
    try:
        places = [socket.inet_pton(family, one[0]).ljust(16, b"\0") for one in (source, destination)]
    except OSError:
        return None
    ports = struct.pack("!HH", source[1], destination[1])
    try:
        kernel = _kernel()
    except (OSError, AttributeError):  # another system, or one that forbids it
        return _uid_in_table(family, places, ports)
    number = next(_numbers) & 0x7FFF_FFFF
    wanted = _WANTED.pack(family, socket.IPPROTO_TCP, 0, 0, _ALL_STATES)
    body = wanted + ports + places[0] + places[1] + _ANY_COOKIE
    try:
        kernel.send(_HEAD.pack(_HEAD.size + len(body), _BY_FAMILY, 1, number, 0) + body)
        answer = kernel.recv(4096)  # the kernel has answered when `send` returns
        _, kind, _, of, _ = _HEAD.unpack_from(answer)
    except (OSError, struct.error):
        kernel.close()
        _kernel.cache_clear()
        return _uid_in_table(family, places, ports)
    if kind != _BY_FAMILY or of != number or len(answer) < _OWNER_OFFSET + _OWNER.size:
        return None  # the kernel knows no such socket any more
    uid: int
    uid, inode = _OWNER.unpack_from(answer, _OWNER_OFFSET)
    return uid if inode and answer[_STATE_OFFSET] != _LISTENING else None


def _uid_in_table(family: int, places: list[bytes], ports: bytes) -> int | None:
    """The same from the kernel's table of connections, as a file."""
    size = 16 if family == socket.AF_INET6 else 4
    wanted = [
        f"{_table_address(place[:size])}:{ports[at : at + 2].hex().upper()}"
        for place, at in zip(places, (0, 2), strict=True)
    ]
    with suppress(OSError):
        table = Path("/proc/net/tcp6" if family == socket.AF_INET6 else "/proc/net/tcp").read_text()
        for line in table.splitlines()[1:]:
            fields = line.split()
            if fields[1:3] == wanted:
                uid, inode = int(fields[7]), int(fields[9])
                return uid if inode else None
    return None


def _table_address(address: bytes) -> str:
    """An address as the table has it: words of 32 bits in the order of this machine."""
    return "".join(f"{word:08X}" for word in struct.unpack(f"={len(address) // 4}I", address))


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
