"""Requests that wish for another protocol: their bodies are no requests, and none keeps a connection open."""

import json
import time

import pytest

from tests.attack.network.attacker import Stranger, host_line
from tests.attack.network.test_bodies import BODY, CHUNKED, CLOSE, post
from tests.attack.network.test_link import link_fields
from tests.e2e.gateway import Gateway

pytestmark = pytest.mark.timeout(120)
H2C = b"connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAoAAA"
SIZE = b"content-length: %d"


def answers(stranger: Stranger) -> list[bytes]:
    """The bodies of the answers with status 200."""
    return [part.partition(b"\r\n\r\n")[2] for part in stranger.answer().split(b"HTTP/1.1 200 OK")[1:]]


@pytest.mark.parametrize("protocol", [b"h2c", b"websocket, h2c", b"TLS/1.2"])
def test_the_body_of_a_request_that_wishes_for_another_protocol_is_no_request(
    gateway: Gateway, protocol: bytes
) -> None:
    """S5: a proxy that passes `Upgrade` on takes it for a body, so the next answer would be another one's."""
    hidden = b"GET /healthz HTTP/1.1\r\n" + host_line(gateway) + b"x: y\r\n\r\n"
    stranger = Stranger(gateway)
    stranger.send(post(gateway, H2C.replace(b"h2c", protocol), SIZE % len(hidden)))
    time.sleep(0.2)  # the body comes apart from the head
    stranger.send(hidden, post(gateway, SIZE % len(BODY), CLOSE), BODY)
    answer = stranger.answer()
    assert answer.count(b"HTTP/1.1 400 ") == 1 and answer.count(b"HTTP/1.1 200 ") <= 1
    assert b'"status"' not in answer


@pytest.mark.parametrize("apart", [False, True])
def test_a_call_that_wishes_for_http_2_is_served_without_it(gateway: Gateway, apart: bool) -> None:
    """S5: HTTP clients of Java wish for it in the first request of each connection."""
    stranger = Stranger(gateway)
    chunks = b"%x\r\n%b\r\n0\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n" % (len(BODY), BODY)
    for sent in ((post(gateway, H2C, SIZE % len(BODY)), BODY), (post(gateway, H2C, CHUNKED), chunks)):
        for piece in sent if apart else (b"".join(sent),):
            stranger.send(piece)
            time.sleep(0.2)
    stranger.send(post(gateway, H2C.replace(b"upgrade,", b"upgrade, close,"), SIZE % len(BODY)), BODY)
    assert [json.loads(one)["result"]["structuredContent"] for one in answers(stranger)] == [{"sum": 3}] * 3


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        pytest.param(b"POST /link", b"", id="not with GET"),
        pytest.param(b"GET /link", b"content-length: 3\r\n", id="with a body"),
        pytest.param(b"GET /link", b"transfer-encoding: chunked\r\n", id="in chunks"),
        pytest.param(b"GET /link?" + b"x" * 9000, b"", id="with a long path"),
        pytest.param(b"GET /link", b"x: " + b"y" * 9000 + b"\r\n", id="with a long header"),
    ],
)
def test_a_websocket_that_cannot_begin_is_refused_and_ends(
    gateway: Gateway, line: bytes, fields: bytes
) -> None:
    """S5: such a connection stayed open, silent, for as long as its peer liked."""
    stranger = Stranger(gateway)
    stranger.send(line, b" HTTP/1.1\r\n", host_line(gateway), fields, link_fields(), b"\r\n")
    assert 400 <= stranger.status() < 500
