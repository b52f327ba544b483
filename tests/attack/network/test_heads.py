"""Heads of requests without end: refused early, at nobody's cost."""

import signal
import time
from contextlib import ExitStack

import pytest

from tests.attack.network.attacker import Bystander, Stranger, at_once, host_line, strangers
from tests.e2e.gateway import Gateway

pytestmark = pytest.mark.timeout(120)
BEGIN = b"GET /healthz HTTP/1.1\r\n"
MB = 1024 * 1024


@pytest.mark.parametrize(
    ("begin", "piece", "total"),
    [
        pytest.param(BEGIN, b"x-name: " + b"v" * 1000 + b"\r\n", 200 * MB, id="200 MB of headers"),
        pytest.param(BEGIN + b"x: ", b"v" * 65_536, 60 * MB, id="a field of 60 MB"),
        pytest.param(BEGIN, b"X: y\r\n" * 1000, 350_000, id="350 KB of short headers"),
        pytest.param(b"GET /", b"a" * 65_536, 60 * MB, id="a path of 60 MB"),
        pytest.param(b"", b"\r\n" * 30_000, 60 * MB, id="empty lines before a request"),
        pytest.param(BEGIN + b"x", b"x" * 65_536, 60 * MB, id="a name of 60 MB"),
    ],
)
def test_a_head_without_end_is_refused_and_costs_nobody_anything(
    gateway: Gateway, begin: bytes, piece: bytes, total: int
) -> None:
    """S5: the bound holds before anybody is known."""
    with Bystander(gateway) as other:
        stranger = Stranger(gateway)
        stranger.send(begin)
        sent = stranger.flood(piece, total)
        assert stranger.status() == 431
        assert sent < 20 * MB, "it was read to its end"  # the system's own buffers hold some
        stranger.close()
        time.sleep(0.2)
    other.check()


def test_a_head_within_the_bounds_is_answered(gateway: Gateway) -> None:
    """S5: the bound holds before anybody is known."""
    fields = b"".join(b"x-%d: %s\r\n" % (number, b"v" * 600) for number in range(97))
    stranger = Stranger(gateway)
    stranger.send(BEGIN, host_line(gateway), b"connection: close\r\n", fields, b"\r\n")
    assert stranger.status() == 200


def test_a_hundred_and_first_header_is_too_much(gateway: Gateway) -> None:
    """S5: the bound holds before anybody is known."""
    stranger = Stranger(gateway)
    stranger.send(BEGIN, host_line(gateway), b"x: y\r\n" * 100, b"\r\n")
    assert stranger.status() == 431


def test_a_head_that_drips_is_ended(short: Gateway) -> None:
    """S5: the bound holds before anybody is known."""
    stranger = Stranger(short)
    begun = time.monotonic()
    stranger.send(b"GET /")
    while time.monotonic() - begun < 1.5 and stranger.send(b"x"):
        time.sleep(0.05)
    assert stranger.status() == 408
    assert time.monotonic() - begun < 6


def test_a_connection_that_says_nothing_ends(short: Gateway) -> None:
    """S5: the bound holds before anybody is known."""
    stranger = Stranger(short)
    begun = time.monotonic()
    assert stranger.answer() == b""
    assert 0.9 < time.monotonic() - begun < 6


def test_a_connection_that_is_not_used_again_ends_also_after_an_empty_line(short: Gateway) -> None:
    """S5: uvicorn stopped its timer at the first byte, and such a connection stayed for ever."""
    stranger = Stranger(short)
    stranger.send(BEGIN, host_line(short), b"\r\n")
    time.sleep(0.2)
    stranger.send(b"\r\n")
    begun = time.monotonic()
    assert stranger.answer().startswith(b"HTTP/1.1 200 ")
    assert time.monotonic() - begun < 6


def test_a_gateway_that_was_stopped_for_a_while_blames_nobody(short: Gateway) -> None:
    """S5: the rest of the head came in time, and only the gateway was late."""
    stranger = Stranger(short)
    stranger.send(BEGIN)
    short.process.send_signal(signal.SIGSTOP)
    try:
        stranger.send(host_line(short), b"connection: close\r\n\r\n")
        time.sleep(2.5)
    finally:
        short.process.send_signal(signal.SIGCONT)
    assert stranger.status() == 200


def test_400_silent_connections_hold_nobody_up(gateway: Gateway) -> None:
    """S5: the bound holds before anybody is known, for those who come and for those who leave."""
    with Bystander(gateway) as other, ExitStack() as made:
        with at_once(gateway):
            made.enter_context(strangers(gateway, 400))
        wait_until_answered(gateway)
        with at_once(gateway):
            made.close()
        wait_until_answered(gateway)
    other.check()


def test_400_half_heads_hold_nobody_up(gateway: Gateway) -> None:
    """S5: the bound holds before anybody is known."""
    with Bystander(gateway) as other, strangers(gateway, 400) as made:
        wait_until_answered(gateway)
        with at_once(gateway):
            for one in made:
                one.send(BEGIN + b"x: " + b"v" * 20_000)
        wait_until_answered(gateway)
    other.check()


def wait_until_answered(gateway: Gateway) -> None:
    """Wait until one who comes now is answered: all who came before have been accepted then."""
    last = Stranger(gateway)
    last.send(BEGIN, host_line(gateway), b"connection: close\r\n\r\n")
    assert last.status() == 200


def test_a_new_connection_ends_the_oldest_one_that_is_silent(short: Gateway) -> None:
    """S5: the bound holds before anybody is known."""
    with strangers(short, 12) as made:
        assert made[0].answer() == b""
        last = made[-1]
        last.send(BEGIN, host_line(short), b"connection: close\r\n\r\n")
        assert last.status() == 200
    time.sleep(0.1)


def test_a_peer_whose_connections_are_all_in_use_gets_no_more(short: Gateway) -> None:
    """S5: the bound holds before anybody is known."""
    half = b"POST /mcp HTTP/1.1\r\n" + host_line(short) + b"content-length: 9\r\n\r\n1"
    with strangers(short, 8) as made:
        for one in made:
            one.send(half)
        time.sleep(0.3)
        ninth = Stranger(short)
        assert ninth.status() == 503
    time.sleep(0.3)
    again = Stranger(short)
    again.send(BEGIN, host_line(short), b"connection: close\r\n\r\n")
    assert again.status() == 200
