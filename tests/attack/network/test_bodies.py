"""Bodies that are too large, too slow or made of framing: refused as they arrive."""

import json
import time

import pytest

from tests.attack.network.attacker import Bystander, Stranger, host_line
from tests.e2e.gateway import Gateway
from tests.e2e.raw_client import call

pytestmark = pytest.mark.timeout(120)
MB = 1024 * 1024
BODY = json.dumps(call("add", {"a": 1, "b": 2})).encode()


def post(gateway: Gateway, *fields: bytes) -> bytes:
    """The head of a call of `add`."""
    usual = (
        b"content-type: application/json", b"accept: application/json, text/event-stream",
        b"mcp-protocol-version: 2026-07-28", b"mcp-method: tools/call", b"mcp-name: add",
    )  # fmt: skip
    lines = b"".join(line + b"\r\n" for line in (*usual, *fields))
    return b"POST /mcp HTTP/1.1\r\n" + host_line(gateway) + lines + b"\r\n"


CHUNKED = b"transfer-encoding: chunked"
CLOSE = b"connection: close"


@pytest.mark.parametrize(
    ("field", "piece", "status"),
    [
        pytest.param(b"content-length: 200000000", b" " * 65_536, 413, id="200 MB"),
        pytest.param(CHUNKED, b"10000\r\n" + b" " * 65_536 + b"\r\n", 413, id="large chunks without end"),
        pytest.param(CHUNKED, b"1\r\n \r\n" * 10_000, 400, id="chunks of one byte"),
        pytest.param(CHUNKED + b"\r\n" + CLOSE, b"1;" + b"x" * 65_536, 400, id="an extension without end"),
        pytest.param(CHUNKED, b"1;" + b"x" * 9000 + b"\r\n \r\n", 400, id="long extensions"),
        pytest.param(CHUNKED, b"0\r\n" + b"x: y\r\n" * 10_000, 431, id="trailers without end"),
        pytest.param(CHUNKED, b"0\r\nx: " + b"y" * 65_536, 400, id="a trailer without end"),
    ],
)
def test_a_body_over_the_bounds_is_refused_and_costs_nobody_anything(
    gateway: Gateway, field: bytes, piece: bytes, status: int
) -> None:
    """S5: the bound holds before anybody is known."""
    with Bystander(gateway) as other:
        stranger = Stranger(gateway)
        stranger.send(post(gateway, field))
        sent = stranger.flood(piece, 200 * MB)
        assert stranger.status() == status
        assert sent < 30 * MB, "it was read to its end"
        time.sleep(0.2)
    other.check()


def test_a_body_that_nobody_reads_is_not_taken_for_ever(gateway: Gateway) -> None:
    """S5: the answer to a GET is sent at once, and 200 MB behind it are not read."""
    stranger = Stranger(gateway)
    stranger.send(b"GET /healthz HTTP/1.1\r\n", host_line(gateway), b"content-length: 200000000\r\n\r\n")
    assert stranger.flood(b"x" * 65_536, 200 * MB) < 30 * MB
    assert stranger.status() == 200


def test_a_slow_body_is_ended(short: Gateway) -> None:
    """S5: the bound holds before anybody is known."""
    stranger = Stranger(short)
    begun = time.monotonic()
    stranger.send(post(short, b"content-length: %d" % len(BODY)))
    while time.monotonic() - begun < 1.5 and stranger.send(b" "):
        time.sleep(0.05)
    assert stranger.status() == 408
    assert time.monotonic() - begun < 6


def test_a_slow_body_behind_its_answer_is_ended(short: Gateway) -> None:
    """S5: the bound holds before anybody is known."""
    stranger = Stranger(short)
    begun = time.monotonic()
    stranger.send(b"GET /healthz HTTP/1.1\r\n", host_line(short), b"content-length: 100\r\n\r\n1")
    assert stranger.status() == 200
    assert time.monotonic() - begun < 6


def test_a_body_in_usual_chunks_and_with_a_trailer_is_a_call(gateway: Gateway) -> None:
    """S5: a trailer is no header, also if it has the name of one."""
    half = len(BODY) // 2
    chunks = [b"%x\r\n%s\r\n" % (len(part), part) for part in (BODY[:half], BODY[half:])]
    stranger = Stranger(gateway)
    stranger.send(post(gateway, CHUNKED, CLOSE), *chunks, b"0\r\nhost: evil\r\nmcp-name: evil\r\n\r\n")
    answer = stranger.answer()
    assert answer.startswith(b"HTTP/1.1 200 ") and b'"sum":3' in answer.replace(b" ", b""), answer


def test_a_body_that_is_awaited_comes_after_a_word(gateway: Gateway) -> None:
    """S5: Expect: 100-continue."""
    stranger = Stranger(gateway)
    stranger.send(post(gateway, b"content-length: %d" % len(BODY), b"expect: 100-continue", CLOSE))
    assert stranger.socket.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
    stranger.send(BODY)
    assert stranger.status() == 200


def test_a_body_that_will_be_refused_is_not_asked_for(gateway: Gateway) -> None:
    """S5: the bound holds before anybody is known."""
    stranger = Stranger(gateway)
    stranger.send(post(gateway, b"content-length: 200000000", b"expect: 100-continue", CLOSE))
    assert stranger.socket.recv(4096).startswith(b"HTTP/1.1 413 ")
    stranger.close()


def test_a_length_of_thousands_of_digits_is_a_number(gateway: Gateway) -> None:
    """S5: Python refuses to convert so many digits, which must be no failure of ours."""
    stranger = Stranger(gateway)
    kind = b"content-type: application/json\r\n"
    length = b"content-length: " + b"0" * 5000 + b"2\r\n"
    stranger.send(b"POST /mcp HTTP/1.1\r\n", host_line(gateway), kind, length, CLOSE + b"\r\n\r\n{}")
    assert stranger.status() not in (0, 500)
    assert "Traceback" not in gateway.said()
