"""The peer of a connection, its user on loopback, and what follows if the kernel does not tell it."""

import asyncio
import os
import socket

import pytest

from afoot.serve.access import peer
from afoot.serve.access.guard import LOCAL_CALLER, Denied, Guard, accepted_hosts
from afoot.serve.access.peer import (
    LOOPBACK,
    PEER,
    is_other_user,
    is_own_user,
    peer_of,
    socket_uid,
    user_or_peer,
)

OTHER = f"uid:{os.geteuid() + 1}"


@pytest.mark.parametrize(
    ("host", "peer"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("127.0.0.1", "loopback"),
        ("127.8.8.8", "loopback"),
        ("::1", "loopback"),
        ("::ffff:127.0.0.1", "loopback"),
        ("", ""),
    ],
)
def test_a_peer_is_an_address_or_a_network(host: str, peer: str) -> None:
    """S5: one who has an IPv6 address has 2 to the 64 of them."""
    assert peer_of((host, 5)) == peer


@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_the_kernel_knows_whose_socket_it_is(family: socket.AddressFamily, host: str) -> None:
    """S5: the bound holds before anybody is known."""
    with socket.create_server((host, 0), family=family) as listener:
        there = listener.getsockname()[:2]
        with socket.create_connection(there) as client:
            here = client.getsockname()[:2]
            for _ in range(3):
                assert socket_uid(here, there) == os.getuid()


def test_a_socket_that_is_not_there_is_nobodys() -> None:
    """S5: and the next question gets its own answer."""
    assert socket_uid(("127.0.0.1", 1), ("127.0.0.1", 2)) is None
    assert socket_uid(("no address", 1), ("127.0.0.1", 2)) is None
    with socket.create_server(("127.0.0.1", 0)) as listener:
        with socket.create_connection(listener.getsockname()) as client:
            assert socket_uid(client.getsockname(), listener.getsockname()) == os.getuid()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("has_netlink", [True, False])
def test_the_kernel_tells_the_user_of_a_connection(
    host: str, has_netlink: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S6: over netlink, and from its table where that cannot be had."""
    if not has_netlink:
        monkeypatch.setattr(peer, "_kernel", _no_netlink)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, 0), family=family)
    except OSError:
        pytest.skip("no IPv6 here")
    with listener, socket.create_connection(listener.getsockname()[:2]) as client:
        server, _ = listener.accept()
        with server:
            remote, local = server.getpeername()[:2], server.getsockname()[:2]
            assert socket_uid(remote, local) == os.geteuid()
            assert user_or_peer(remote, local) == f"uid:{os.geteuid()}"
            assert socket_uid((host, 1), local) is None
        client.close()


@pytest.mark.parametrize("has_netlink", [True, False])
def test_a_socket_that_was_closed_is_nobodys(has_netlink: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """S6: the kernel says root of it, who may do everything; the request is there all the same."""
    if not has_netlink:
        monkeypatch.setattr(peer, "_kernel", _no_netlink)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        there = listener.getsockname()
        client = socket.create_connection(there)
        here = client.getsockname()
        client.sendall(b"a request")
        client.close()
        assert socket_uid(here, there) is None
        server, remote = listener.accept()
        with server:
            assert server.recv(100) == b"a request"
            assert user_or_peer(remote, there) == LOOPBACK


def test_who_only_sends_no_more_is_known() -> None:
    """S6: a client may close its half, and read the answer."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        with socket.create_connection(listener.getsockname()) as client:
            client.shutdown(socket.SHUT_WR)
            assert socket_uid(client.getsockname(), listener.getsockname()) == os.geteuid()


def test_a_listener_is_not_taken_for_a_connection() -> None:
    """S6: the kernel names a socket that listens at the port where it knows no connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert socket_uid(listener.getsockname(), ("127.0.0.1", 1)) is None


def _no_netlink() -> socket.socket:
    """The kernel forbids it."""
    raise PermissionError


def scope(name: str) -> dict[str, object]:
    """A request on a connection of this peer."""
    return {"type": "http", "headers": [(b"host", b"127.0.0.1:1")], "state": {PEER: name}}


@pytest.mark.parametrize(
    ("name", "own", "other"),
    [
        (f"uid:{os.geteuid()}", True, False),
        ("uid:0", True, False),
        (OTHER, False, True),
        (LOOPBACK, False, False),
        ("192.0.2.1", False, False),
    ],
    ids=["own", "root", "other", "unknown", "elsewhere"],
)
def test_users_are_told_apart(name: str, own: bool, other: bool) -> None:
    """S6: root may read the secrets of everybody anyway."""
    assert (is_own_user(scope(name)), is_other_user(scope(name))) == (own, other)


def test_where_the_kernel_does_not_tell_the_user_a_token_is_needed() -> None:
    """S6: not Linux, or a container that hides it."""
    guard = Guard(accepted_hosts(1, ()), frozenset())
    with pytest.raises(Denied, match="afoot connect"):
        asyncio.run(guard.identify_caller(scope(LOOPBACK)))
    with pytest.raises(Denied, match="everyone"):
        asyncio.run(guard.identify_caller(scope(OTHER)))
    everyone = Guard(accepted_hosts(1, ()), frozenset(), serves_everyone=True)
    assert asyncio.run(everyone.identify_caller(scope(LOOPBACK))).caller == LOCAL_CALLER
