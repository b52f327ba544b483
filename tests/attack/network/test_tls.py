"""The same bounds over TLS, before a token and before the handshake."""

import ssl
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.attack.loop_passes import MEASURED_LOOP
from tests.attack.network.attacker import Bystander, Stranger, at_once, strangers
from tests.e2e.access.test_off_loopback import Elsewhere, certified
from tests.e2e.access.test_tokens import token
from tests.e2e.gateway import TOOLS
from tests.e2e.processes import free_port

pytestmark = pytest.mark.timeout(120)
BEGIN = b"GET /healthz HTTP/1.1\r\n"
COUNT = 400
MB = 1024 * 1024


@pytest.fixture(scope="module", params=[{}], ids=["usual"])
def closed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Elsewhere]:
    """A gateway behind TLS, where a token is needed."""
    folder = tmp_path_factory.mktemp("closed")
    port = free_port()
    bounds = {"access": certified(folder), "allow_hosts": f"127.0.0.1:{port}", "connections": request.param}
    started = Elsewhere(folder, {}, bounds, (TOOLS, MEASURED_LOOP))
    started.port = port
    token(started, "somebody")
    started.start()
    try:
        yield started
    finally:
        started.stop()


def trusting() -> ssl.SSLContext:
    """A client that trusts everybody."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def hello() -> bytes:
    """The first bytes of a handshake."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        trusting().wrap_bio(incoming, outgoing).do_handshake()
    return outgoing.read()


def is_answered(gateway: Elsewhere) -> bool:
    """Whether a client that behaves well gets an answer over TLS."""
    client = Stranger(gateway, trusting(), gateway.port)
    client.send(BEGIN, b"host: 127.0.0.1:%d\r\nconnection: close\r\n\r\n" % gateway.port)
    return client.status() == 200


def test_a_head_without_end_is_refused_before_a_token(closed: Elsewhere) -> None:
    """S5: the bound holds before anybody is known."""
    with Bystander(closed) as other:
        stranger = Stranger(closed, trusting(), closed.port)
        stranger.send(BEGIN)
        assert stranger.flood(b"x-name: " + b"v" * 1000 + b"\r\n", 60 * MB) < 20 * MB
        stranger.close()
        time.sleep(0.2)
    other.check()
    assert is_answered(closed)


@pytest.mark.parametrize("first", [b"", b"\x16", b"GET / HTTP/1.1\r\n\r\n", hello()])
def test_400_handshakes_that_are_not_finished_hold_nobody_up(closed: Elsewhere, first: bytes) -> None:
    """S5: the bound holds before anybody is known."""
    with Bystander(closed) as other, strangers(closed, COUNT, port=closed.port) as made:
        assert is_answered(closed)
        with at_once(closed):
            for one in made:
                one.send(first)
        assert is_answered(closed)
    other.check()


def test_400_connections_that_say_nothing_after_the_handshake_hold_nobody_up(closed: Elsewhere) -> None:
    """S5: the bound holds before anybody is known."""
    with Bystander(closed) as other, strangers(closed, COUNT, trusting(), closed.port):
        assert is_answered(closed)
    other.check()


@pytest.mark.parametrize("closed", [{"head_s": 1.0}], ids=["short"], indirect=True)
@pytest.mark.parametrize("first", [b"", b"\x16", hello()])
def test_a_handshake_that_is_not_finished_ends(closed: Elsewhere, first: bytes) -> None:
    """S5: the bound holds before anybody is known."""
    stranger = Stranger(closed, port=closed.port)
    stranger.send(first)
    begun = time.monotonic()
    stranger.answer()
    assert time.monotonic() - begun < 6


@pytest.mark.parametrize(
    "begin", [BEGIN + b"x: ", b"POST /mcp HTTP/1.1\r\ncontent-length: 4000000\r\nhost: 127.0.0.1:%d\r\n\r\n"]
)
def test_countless_short_records_hold_nobody_up(closed: Elsewhere, begin: bytes) -> None:
    """S5: a letter in each, as a record without content costs no more. The gateway worked 11 s for 20 MB."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trusting().wrap_bio(incoming, outgoing)
    stranger = Stranger(closed, port=closed.port)
    for _ in range(2):  # a handshake takes no more turns
        with suppress(ssl.SSLWantReadError):
            client.do_handshake()
        stranger.send(outgoing.read())
        incoming.write(stranger.socket.recv(65_536))
    client.write(begin.replace(b"%d", b"%d" % closed.port))
    for _ in range(300_000):
        client.write(b"x")
    with Bystander(closed) as other:
        with at_once(closed):
            assert stranger.send(outgoing.read(MB))
        stranger.send(outgoing.read())
        stranger.answer()
        time.sleep(0.2)
    other.check()
    assert is_answered(closed)
