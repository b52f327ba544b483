"""Ends of TLS that bound how many records come for what little content."""

import ssl
from contextlib import suppress
from pathlib import Path

import pytest

from afoot.serve.http_server.tls import FREE_RECORDS, MEAN_RECORD_BYTES, TlsContext
from tests.e2e.access.test_off_loopback import certified


class Pair:
    """A server's end and a client's, after their handshake."""

    def __init__(self, folder: Path) -> None:
        files = certified(folder)
        context = TlsContext()
        context.load_cert_chain(files["tls_cert"], files["tls_key"])
        self.incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.server = context.wrap_bio(self.incoming, self._outgoing, server_side=True)
        self._to_client, self.sent = ssl.MemoryBIO(), ssl.MemoryBIO()
        trusting = ssl.create_default_context(cafile=files["tls_cert"])
        self.client = trusting.wrap_bio(self._to_client, self.sent, server_hostname="127.0.0.1")
        for _ in range(2):
            for side in (self.client, self.server):
                with suppress(ssl.SSLWantReadError):
                    side.do_handshake()
                self.incoming.write(self.sent.read())
                self._to_client.write(self._outgoing.read())

    def read(self) -> bytes:
        """All that has come, as an event loop reads it."""
        found = b""
        while self.incoming.pending or self.server.pending():
            try:
                found += self.server.read(65_536)
            except ssl.SSLWantReadError:
                break
        return found


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    """Both ends of a connection."""
    return Pair(tmp_path)


def test_content_comes_whole_in_pieces_of_any_size(pair: Pair) -> None:
    """S5: heads of records that come in two pieces are counted once."""
    content = bytes(range(256)) * 400
    for at in range(0, len(content), 1000):
        pair.client.write(content[at : at + 1000])
    found = b""
    while data := pair.sent.read(7):
        pair.incoming.write(data)
        found += pair.read()
    assert found == content


def test_short_records_are_bounded(pair: Pair) -> None:
    """S5: none of those that are too many is read."""
    for _ in range(FREE_RECORDS * 2):
        pair.client.write(b"x")
    pair.incoming.write(pair.sent.read())
    with pytest.raises(ssl.SSLError, match="too many TLS records"):
        pair.server.read()


def test_large_records_are_not(pair: Pair) -> None:
    """S5: a large body takes many."""
    for _ in range(FREE_RECORDS * 3):
        pair.client.write(b"x" * MEAN_RECORD_BYTES)
    pair.incoming.write(pair.sent.read())
    assert len(pair.read()) == FREE_RECORDS * 3 * MEAN_RECORD_BYTES


def test_a_client_that_waits_for_each_answer_may_send_as_many_as_it_likes(pair: Pair) -> None:
    """S5: a thousand requests a second over one connection are no attack."""
    for _ in range(FREE_RECORDS * 2):
        pair.client.write(b"x")
        pair.incoming.write(pair.sent.read())
        assert pair.server.read() == b"x"
        pair.server.write(b"y")
