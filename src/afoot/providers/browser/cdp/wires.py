"""What carries the DevTools protocol: the pipe of a browser that we started, or its WebSocket."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Protocol

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException

CHUNK = 1 << 18
MESSAGE = 128 << 20  # what a browser may send in one message: 32 MB of a page, written as \uXXXX
OPEN_S = 5.0
CLOSE_S = 1.0


class Wire(Protocol):
    """Carries messages both ways, in order."""

    async def send(self, message: bytes) -> None:
        """Hand a message over; raises ConnectionError when nobody is there."""
        ...

    def messages(self) -> AsyncIterator[bytes | str]:
        """What the browser says, until it is gone."""
        ...

    async def close(self) -> None:
        """Say nothing more, and hear nothing more."""
        ...


class Pipe:
    """The two pipes of a browser started with --remote-debugging-pipe; a NUL ends each message."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._readers: asyncio.BaseTransport | None = None

    @classmethod
    async def on(cls, reading: int, writing: int) -> "Pipe":
        """The wire on two file descriptors, which are closed with it."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=CHUNK)
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(reading, "rb", 0)
        )
        sink, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(writing, "wb", 0)
        )
        pipe = cls(reader, asyncio.StreamWriter(sink, protocol, None, loop))
        pipe._readers = transport
        return pipe

    async def send(self, message: bytes) -> None:
        """Hand a message over; raises ConnectionError when nobody is there."""
        self._writer.write(message + b"\0")
        await self._writer.drain()

    async def messages(self) -> AsyncIterator[bytes | str]:
        """What the browser says, until it is gone."""
        rest: list[bytes] = []
        while chunk := await self._reader.read(CHUNK):
            first, *others = chunk.split(b"\0")
            rest.append(first)
            if not others:
                continue
            yield b"".join(rest)
            for whole in others[:-1]:
                yield whole
            rest = [others[-1]]

    async def close(self) -> None:
        """Say nothing more, and hear nothing more; the browser ends itself by this."""
        if self._writer.transport.get_write_buffer_size():
            self._writer.transport.abort()  # whoever does not read is not waited for
        else:
            self._writer.close()
        if self._readers is not None:
            self._readers.close()
        with suppress(OSError):
            await self._writer.wait_closed()


class Socket:
    """A WebSocket to a browser with a debugging port."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket

    @classmethod
    async def to(cls, url: str) -> "Socket":
        """Connect; raises ConnectionError, saying why not."""
        try:
            # No proxy: the browser is on this machine. No pings: a stopped debugger answers none.
            socket = await connect(
                url, proxy=None, compression=None, max_size=MESSAGE, open_timeout=OPEN_S,
                close_timeout=CLOSE_S, ping_interval=None,
            )  # fmt: skip
        except (OSError, WebSocketException) as error:
            raise ConnectionError(f"{url}: {error}") from None
        return cls(socket)

    async def send(self, message: bytes) -> None:
        """Hand a message over; raises ConnectionError when nobody is there."""
        try:
            await self._socket.send(message, text=True)
        except ConnectionClosed as closed:
            raise ConnectionError(str(closed)) from None

    async def messages(self) -> AsyncIterator[bytes | str]:
        """What the browser says, until it is gone."""
        with suppress(ConnectionClosed):
            while True:
                yield await self._socket.recv(decode=False)

    async def close(self) -> None:
        """Say nothing more, and hear nothing more."""
        await self._socket.close()
