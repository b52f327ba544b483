"""The extension's WebSocket before its proof: little may be sent, and not for long."""

import os
import struct
import time

import pytest

from afoot.providers.browser.extension_files import shipped_manifest
from afoot.wire.extension import SUBPROTOCOL
from tests.attack.network.attacker import Bystander, Stranger, host_line
from tests.e2e.gateway import Gateway

pytestmark = pytest.mark.timeout(120)
MB = 1024 * 1024
TEXT, PING = 0x81, 0x89
PART = 0x01  # a text that goes on in the next frame


def link_fields() -> bytes:
    """The headers of one who wishes for a WebSocket, and knows the extension's name, which is no secret."""
    fields = (
        "connection: upgrade", "upgrade: websocket", "sec-websocket-version: 13",
        "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==", f"sec-websocket-protocol: {SUBPROTOCOL}",
        f"origin: {shipped_manifest().origin}",
    )  # fmt: skip
    return "".join(f"{line}\r\n" for line in fields).encode()


def linked(gateway: Gateway) -> Stranger:
    """A WebSocket to `/link`."""
    stranger = Stranger(gateway)
    stranger.send(b"GET /link HTTP/1.1\r\n", host_line(gateway), link_fields(), b"\r\n")
    assert stranger.socket.recv(4096).startswith(b"HTTP/1.1 101 ")
    return stranger


def frame(kind: int, size: int) -> bytes:
    """The head of a frame of this size, with a mask of nothing."""
    length = bytes([0x80 | size]) if size < 126 else b"\xff" + struct.pack("!Q", size)
    return bytes([kind]) + length + bytes(4)


@pytest.mark.parametrize(
    ("begin", "piece"),
    [
        pytest.param(frame(TEXT, 39 * MB), b"x" * 65_536, id="a frame of 39 MB"),
        pytest.param(b"", (frame(PING, 100) + b"p" * 100) * 1000, id="pings whose answers nobody reads"),
        pytest.param(b"", frame(PART, 0) + frame(0, 0) * 1000, id="a message of empty frames"),
    ],
)
def test_one_who_proved_nothing_can_send_little(gateway: Gateway, begin: bytes, piece: bytes) -> None:
    """S5, B7: the bound holds before the proof."""
    with Bystander(gateway) as other:
        stranger = linked(gateway)
        stranger.send(begin)
        assert stranger.flood(piece, 38 * MB) < 20 * MB
        stranger.answer()
        time.sleep(0.2)
    other.check()


def test_a_silent_websocket_ends_and_is_not_counted_any_more(gateway: Gateway) -> None:
    """S5, B7: the bound holds before the proof."""
    before = descriptors(gateway)
    strangers = [linked(gateway) for _ in range(32)]
    full = Stranger(gateway)
    full.send(b"GET /link HTTP/1.1\r\n", host_line(gateway), b"connection: close\r\n\r\n")
    assert full.status() in (403, 503)
    for one in strangers:
        one.answer()
    deadline = time.monotonic() + 10
    while descriptors(gateway) > before + 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert descriptors(gateway) <= before + 2


def descriptors(gateway: Gateway) -> int:
    """How many files the gateway holds open."""
    return len(os.listdir(f"/proc/{gateway.process.pid}/fd"))
