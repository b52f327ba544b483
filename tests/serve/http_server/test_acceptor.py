"""How connections are accepted: all that wait, a few at a time, and none after the end."""

import asyncio
import socket
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from afoot.config.tables import ConnectionSettings
from afoot.serve.http_server.acceptor import Acceptor
from afoot.serve.http_server.connections import Connections
from tests.e2e.access.test_off_loopback import certified


class Greeter(asyncio.Protocol):
    """Says hello, and ends the connection."""

    replaces: Callable[[], None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Greet."""
        assert isinstance(transport, asyncio.Transport)
        if self.replaces is not None:
            self.replaces()
        transport.write(b"hello")
        transport.close()


def listening() -> socket.socket:
    """A socket that listens on loopback."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=200)
    listener.setblocking(False)
    return listener


def bounds() -> Connections:
    """The usual ones."""
    return Connections(ConnectionSettings(), 1000)


async def greeting(listener: socket.socket, tls: ssl.SSLContext | None = None) -> bytes:
    """The words of one connection."""
    reader, writer = await asyncio.open_connection(*listener.getsockname(), ssl=tls)
    try:
        return await asyncio.wait_for(reader.read(), 20)
    finally:
        writer.close()


async def test_many_that_connect_at_once_are_all_accepted() -> None:
    """S5: the bound holds before anybody is known."""
    with listening() as listener:
        acceptor = Acceptor(listener, None, Greeter, bounds())
        acceptor.start()
        found = await asyncio.gather(*(greeting(listener) for _ in range(100)))
        acceptor.close()
        await acceptor.wait_closed()
    assert found == [b"hello"] * 100


async def test_tls_begins_with_the_first_bytes_and_is_counted_before(tmp_path: Path) -> None:
    """S5: the bound holds before anybody is known."""
    files = certified(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files["tls_cert"], files["tls_key"])
    trusting = ssl.create_default_context(cafile=files["tls_cert"])
    counted = bounds()
    with listening() as listener:
        acceptor = Acceptor(listener, context, Greeter, counted)
        acceptor.start()
        silent = await asyncio.open_connection(*listener.getsockname())
        assert await asyncio.gather(*(greeting(listener, trusting) for _ in range(20))) == [b"hello"] * 20
        acceptor.close()
        await acceptor.wait_closed()
        assert not len(counted) and await silent[0].read() == b""
        silent[1].close()


async def test_one_who_speaks_no_tls_is_forgotten(tmp_path: Path) -> None:
    """S5: the bound holds before anybody is known."""
    files = certified(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files["tls_cert"], files["tls_key"])
    counted = bounds()
    with listening() as listener:
        acceptor = Acceptor(listener, context, Greeter, counted)
        acceptor.start()
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        await asyncio.wait_for(reader.read(), 20)
        writer.close()
        acceptor.close()
        await acceptor.wait_closed()
    assert not len(counted)


async def test_without_descriptors_it_accepts_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """S5: a full table of descriptors is no end, and no busy loop."""

    class Full(socket.socket):
        failures = 2

        def accept(self) -> tuple[socket.socket, object]:
            """Fail twice."""
            if self.failures:
                self.failures -= 1
                raise OSError(24, "Too many open files")
            return super().accept()

    with Full() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.setblocking(False)
        acceptor = Acceptor(listener, None, Greeter, bounds())
        acceptor.start()
        assert await greeting(listener) == b"hello"
        acceptor.close()
        await acceptor.wait_closed()
