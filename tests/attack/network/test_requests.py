"""Requests that are odd, broken or too many at once: a clean refusal each, and the next one is answered."""

import json
import time

import pytest

from tests.attack.network.attacker import Bystander, Stranger, host_line
from tests.attack.network.test_bodies import CLOSE, post
from tests.e2e.gateway import Gateway, until
from tests.e2e.raw_client import call

pytestmark = pytest.mark.timeout(120)
BEGIN = b"GET /healthz HTTP/1.1\r\n"


@pytest.mark.parametrize(
    ("line", "status"),
    [
        (b"OPTIONS * HTTP/1.1", 400),
        (b"GET http://127.0.0.1/healthz HTTP/1.1", 400),
        (b"GET http://evil.example/healthz HTTP/1.1", 400),
        (b"CONNECT evil.example:443 HTTP/1.1", 400),
        (b"GET healthz HTTP/1.1", 400),
        (b"GET /\xff HTTP/1.1", 400),
        (b"FROB /healthz HTTP/1.1", 400),
        (b"get /healthz HTTP/1.1", 400),
        (b"GET /healthz HTTP/9.9", 400),
        (b"GET /healthz", 421),  # of HTTP/0.9, and without a Host
        (b"PRI * HTTP/2.0", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
        (b"GET  /healthz  HTTP/1.1 x", 400),
        (b"GET /heal\0thz HTTP/1.1", 400),
    ],
)
def test_a_broken_request_line_is_refused(gateway: Gateway, line: bytes, status: int) -> None:
    """S5: the bound holds before anybody is known."""
    stranger = Stranger(gateway)
    stranger.send(line, b"\r\nconnection: close\r\n\r\n")
    assert stranger.status() == status
    assert "Traceback" not in gateway.said()


@pytest.mark.parametrize("method", [b"TRACE", b"PROPFIND", b"PURGE", b"PUT", b"CONNECT", b"DELETE"])
@pytest.mark.parametrize("path", [b"/healthz", b"/mcp", b"/api/calls", b"/link", b"/"])
def test_a_method_that_is_not_meant_is_refused(gateway: Gateway, method: bytes, path: bytes) -> None:
    """S5: the bound holds before anybody is known."""
    stranger = Stranger(gateway)
    stranger.send(b"%s %s HTTP/1.1\r\n" % (method, path), host_line(gateway), CLOSE, b"\r\n\r\n")
    assert 400 <= stranger.status() < 500
    assert "Traceback" not in gateway.said()


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        (b"host: evil\r\n", 400),  # the second one
        (b"HOST: evil\r\n", 400),
        (b"content-length: 1\r\ncontent-length: 2\r\n", 400),
        (b"content-length: 1\r\ntransfer-encoding: chunked\r\n", 400),
        (b"content-length: -1\r\n", 400),
        (b"content-length: 99999999999999999999999\r\n", 400),
        (b"transfer-encoding: chunked, gzip\r\n", 400),
        (b"expect: a-miracle\r\n", 417),
        (b"x y: z\r\n", 400),
        (b"x: a\0b\r\n", 400),
        (b"x: a\r\n folded\r\n", 400),
        (b": empty\r\n", 400),
    ],
)
def test_broken_headers_are_refused(gateway: Gateway, fields: bytes, status: int) -> None:
    """S5: the bound holds before anybody is known."""
    stranger = Stranger(gateway)
    stranger.send(BEGIN, host_line(gateway), fields, CLOSE, b"\r\n\r\n")
    assert stranger.status() == status


def test_an_upgrade_to_an_unknown_protocol_is_answered_without_it(gateway: Gateway) -> None:
    """S5: the bound holds before anybody is known."""
    upgrade = b"connection: upgrade, close\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAoAAA\r\n\r\n"
    stranger = Stranger(gateway)
    stranger.send(BEGIN, host_line(gateway), upgrade)
    assert stranger.answer().startswith(b"HTTP/1.1 200 ")


def test_http_1_0_is_answered_and_its_connection_ends(gateway: Gateway) -> None:
    """S5: the bound holds before anybody is known."""
    stranger = Stranger(gateway)
    stranger.send(b"GET /healthz HTTP/1.0\r\n", host_line(gateway), b"connection: keep-alive\r\n\r\n")
    assert stranger.answer().startswith(b"HTTP/1.1 200 ")


def test_requests_that_do_not_wait_for_the_answer_end_the_connection_behind_it(gateway: Gateway) -> None:
    """S5: the first is answered, and says that the connection ends, so that a client repeats the others."""
    with Bystander(gateway) as other:
        stranger = Stranger(gateway)
        stranger.send((BEGIN + host_line(gateway) + b"\r\n") * 20_000)
        answer = stranger.answer()
        time.sleep(0.2)
    assert answer.count(b"HTTP/1.1 ") == 1 and answer.startswith(b"HTTP/1.1 200 ")
    assert b"connection: close" in answer
    other.check()


def test_one_who_sent_a_second_request_and_left_has_left(gateway: Gateway) -> None:
    """S5: uvicorn told only the newest request of a connection that its client has gone."""
    body = json.dumps(call("linger", {"tag": "pipelined"})).encode()
    stranger = Stranger(gateway)
    head = post(gateway, b"content-length: %d" % len(body)).replace(b"mcp-name: add", b"mcp-name: linger")
    stranger.send(head, body)
    gateway.until_marked("pipelined", "")
    stranger.send(BEGIN, host_line(gateway), b"\r\n")
    time.sleep(0.1)
    stranger.close()
    until(lambda: len(gateway.marks("pipelined")) > 1, "the call is told")


def test_refusals_fill_no_log(gateway: Gateway) -> None:
    """S5: the bound holds before anybody is known."""
    before = len(gateway.said())
    for _ in range(50):
        stranger = Stranger(gateway)
        stranger.send(b"nonsense\r\n\r\n")
        assert stranger.status() == 400
    assert len(gateway.said()) - before < 500
