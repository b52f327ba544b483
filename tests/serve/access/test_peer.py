"""By whom connections are counted."""

import os
import socket

import pytest

from afoot.serve.access.peer import peer_of, socket_uid


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
