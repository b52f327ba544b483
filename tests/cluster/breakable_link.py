"""A TCP connection to Redis that tests cut: a partition between one gateway and its Redis."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress


class BreakableLink:
    """Passes on what two sides send, until it is cut; `url` is the address of Redis behind it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.loses_reply_to = b""  # a part of a request: its connection breaks before the reply, once
        self._is_cut = False
        self._pipes: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        """The address of this side of the link."""
        assert self._server is not None
        port: int = self._server.sockets[0].getsockname()[1]
        return f"redis://127.0.0.1:{port}/0"

    async def start(self) -> None:
        """Listen on a port of its own."""
        self._server = await asyncio.start_server(self._connect, "127.0.0.1", 0)

    def cut(self) -> None:
        """Break all connections, and let no new one through."""
        self._is_cut = True
        for pipe in list(self._pipes):
            pipe.transport.abort()

    def mend(self) -> None:
        """Let connections through again."""
        self._is_cut = False

    async def close(self) -> None:
        """Listen no more."""
        assert self._server is not None
        self._server.close()
        self.cut()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_cut:
            writer.transport.abort()
            return
        to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self._port)
        if self._is_cut:  # meanwhile
            for pipe in (writer, to_writer):
                pipe.transport.abort()
            return
        self._pipes |= {writer, to_writer}
        is_lost = asyncio.Event()

        def request_passes(data: bytes) -> bool:
            if self.loses_reply_to and self.loses_reply_to in data:
                self.loses_reply_to = b""
                is_lost.set()
            return True

        def reply_passes(data: bytes) -> bool:
            return not is_lost.is_set()

        with suppress(OSError):
            await asyncio.gather(
                _pass_on(reader, to_writer, request_passes), _pass_on(to_reader, writer, reply_passes)
            )
        self._pipes -= {writer, to_writer}


async def _pass_on(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, passes: Callable[[bytes], bool]
) -> None:
    try:
        while (data := await reader.read(65536)) and passes(data):
            writer.write(data)
            await writer.drain()
    finally:
        writer.transport.abort()


@asynccontextmanager
async def breakable_link(port: int) -> AsyncIterator[BreakableLink]:
    """A link that ends with the block."""
    link = BreakableLink(port)
    await link.start()
    try:
        yield link
    finally:
        await link.close()
