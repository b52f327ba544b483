"""`CdpConnection` sends commands to a browser over the DevTools protocol, and receives answers and events.

Its transport is the pipe of a browser that the gateway started, or a WebSocket. The address of a WebSocket
must be on this machine, because everybody who can connect to a debugging port controls the browser.
"""

import asyncio
import json
import logging
import os
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from itertools import count
from typing import Any, Protocol
from urllib.parse import urlsplit

import msgspec
from msgspec import Raw, Struct
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException

from afoot.config.settings import ConfigError
from afoot.core.facts import NOTHING
from afoot.wire.browser_data import decode_page_json

log = logging.getLogger("afoot")

LOOPBACK = ("127.0.0.1", "localhost", "::1")
HTTP_TIMEOUT_S = 5.0
OPEN_S = 5.0
CLOSE_S = 1.0
ANSWER_S = 10.0
READ_BYTES = 1 << 18
MESSAGE_BYTES = 128 << 20  # of one message of a browser: 32 MB of a page, each character written as \uXXXX
QUEUE_BYTES = 64 << 20  # that may wait for a browser that does not read
START_HINT = (
    "start one with --remote-debugging-port=PORT and a --user-data-dir of its own"
    " (Chrome 136 and later ignore the port on the default profile)"
)


class CdpError(Struct, frozen=True):
    """The error of a command, as the browser describes it."""

    message: str = ""
    code: int = 0


class CdpMessage(Struct, frozen=True):
    """A message of a browser: the answer to a command, or an event."""

    id: int | None = None
    method: str = ""
    params: Raw = NOTHING
    result: Raw = NOTHING
    error: CdpError | None = None
    session: str = msgspec.field(name="sessionId", default="")


class CommandError(Exception):
    """The browser answered a command with an error."""


class CdpTransport(Protocol):
    """Transports messages in both directions, in order."""

    async def send(self, message: bytes) -> None:
        """Send a message; raises ConnectionError if the browser is gone."""
        ...

    def messages(self) -> AsyncIterator[bytes | str]:
        """Yield the messages of the browser until it is gone."""
        ...

    async def close(self) -> None:
        """Close both directions."""
        ...


OnEvent = Callable[[CdpMessage], None]


class CdpConnection:
    """The connection to one browser. Commands are queued and sent in order; events are handled in order."""

    def __init__(self, transport: CdpTransport, on_event: OnEvent) -> None:
        """`on_event` gets every event, on the loop, in order."""
        self._transport = transport
        self._on_event = on_event
        self._numbers = count(1)
        self._open: dict[int, asyncio.Future[Raw]] = {}
        self._outgoing: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._more = asyncio.Event()
        self._read = msgspec.json.Decoder(CdpMessage)
        self.unreadable = 0  # messages that could not be read
        self.is_gone = False

    async def run(self) -> None:
        """Send and receive until the browser is gone; commands without an answer fail then."""
        writing = asyncio.create_task(self._write())
        try:
            async for message in self._transport.messages():
                self._on_message(message)
        finally:
            self.is_gone = True
            writing.cancel()
            with suppress(asyncio.CancelledError):
                await writing
            for future in self._open.values():
                if not future.done():
                    future.set_exception(ConnectionError("the browser is gone"))
                    future.exception()  # retrieved here: the caller may have stopped waiting
            self._open.clear()
            await self._transport.close()

    def post(self, method: str, params: Mapping[str, Any] | None = None, session: str = "") -> bool:
        """Send a command without waiting for its answer; False if it cannot be sent."""
        return self._send(next(self._numbers), method, params, session)

    async def call(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        session: str = "",
        limit_s: float = ANSWER_S,
    ) -> Any:
        """Send a command and return its result; raises CommandError, ConnectionError, TimeoutError."""
        return msgspec.json.decode(await self.call_raw(method, params, session, limit_s))

    async def call_raw(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        session: str = "",
        limit_s: float = ANSWER_S,
    ) -> Raw:
        """Like `call`, but the result is not decoded."""
        number = next(self._numbers)
        future: asyncio.Future[Raw] = asyncio.get_running_loop().create_future()
        self._open[number] = future
        try:
            if not self._send(number, method, params, session):
                raise ConnectionError("the browser is gone, or does not read")
            async with asyncio.timeout(limit_s):
                return await future
        except TimeoutError:
            raise TimeoutError(f"no answer to {method} within {limit_s:g} s") from None
        finally:
            self._open.pop(number, None)

    def _send(self, number: int, method: str, params: Mapping[str, Any] | None, session: str) -> bool:
        command: dict[str, Any] = {"id": number, "method": method, "params": params or {}}
        if session:
            command["sessionId"] = session
        text = msgspec.json.encode(command)
        if self.is_gone or self._waiting_bytes + len(text) > QUEUE_BYTES:
            return False
        self._outgoing.append(text)
        self._waiting_bytes += len(text)
        self._more.set()
        return True

    async def _write(self) -> None:
        with suppress(ConnectionError):
            while True:
                while self._outgoing:
                    text = self._outgoing.popleft()
                    await self._transport.send(text)
                    self._waiting_bytes -= len(text)
                self._more.clear()
                await self._more.wait()

    def _on_message(self, text: bytes | str) -> None:
        try:
            message = decode_page_json(self._read, text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            self.unreadable += 1
            log.debug("a browser sent what is no message: %s", error)
            return
        if message.id is None:
            self._on_event(message)
            return
        future = self._open.get(message.id)
        if future is None or future.done():
            return
        if message.error is not None:
            future.set_exception(CommandError(message.error.message))
        else:
            future.set_result(message.result)


class PipeTransport:
    """The two pipes of a browser started with --remote-debugging-pipe; a NUL ends each message."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._read_transport: asyncio.BaseTransport | None = None

    @classmethod
    async def open(cls, reading: int, writing: int) -> "PipeTransport":
        """Make a transport of two file descriptors, which are closed with it."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=READ_BYTES)
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(reading, "rb", 0)
        )
        sink, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(writing, "wb", 0)
        )
        pipe = cls(reader, asyncio.StreamWriter(sink, protocol, None, loop))
        pipe._read_transport = transport
        return pipe

    async def send(self, message: bytes) -> None:
        """Send a message; raises ConnectionError if the browser is gone."""
        self._writer.write(message + b"\0")
        await self._writer.drain()

    async def messages(self) -> AsyncIterator[bytes | str]:
        """Yield the messages of the browser until it is gone."""
        rest: list[bytes] = []
        while chunk := await self._reader.read(READ_BYTES):
            first, *others = chunk.split(b"\0")
            rest.append(first)
            if not others:
                continue
            yield b"".join(rest)
            for whole in others[:-1]:
                yield whole
            rest = [others[-1]]

    async def close(self) -> None:
        """Close both pipes; the browser ends itself when they are closed."""
        if self._writer.transport.get_write_buffer_size():
            self._writer.transport.abort()  # do not wait for a browser that does not read
        else:
            self._writer.close()
        if self._read_transport is not None:
            self._read_transport.close()
        with suppress(OSError):
            await self._writer.wait_closed()


class WebSocketTransport:
    """A WebSocket to a browser with a debugging port."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket

    @classmethod
    async def connect(cls, url: str) -> "WebSocketTransport":
        """Connect; raises ConnectionError, saying why not."""
        try:
            # No proxy: the browser is on this machine. No pings: a stopped debugger answers none.
            socket = await connect(
                url, proxy=None, compression=None, max_size=MESSAGE_BYTES, open_timeout=OPEN_S,
                close_timeout=CLOSE_S, ping_interval=None,
            )  # fmt: skip
        except (OSError, WebSocketException) as error:
            raise ConnectionError(f"{url}: {error}") from None
        return cls(socket)

    async def send(self, message: bytes) -> None:
        """Send a message; raises ConnectionError if the browser is gone."""
        try:
            await self._socket.send(message, text=True)
        except ConnectionClosed as closed:
            raise ConnectionError(str(closed)) from None

    async def messages(self) -> AsyncIterator[bytes | str]:
        """Yield the messages of the browser until it is gone."""
        with suppress(ConnectionClosed):
            while True:
                yield await self._socket.recv(decode=False)

    async def close(self) -> None:
        """Close both directions."""
        await self._socket.close()


class Address(Struct, frozen=True):
    """The address of a debugging port; `path` is that of the WebSocket, if it is known."""

    host: str
    port: int
    path: str = ""

    def __str__(self) -> str:
        """The address as a person wrote it."""
        return f"{'ws' if self.path else 'http'}://{self._host_port}{self.path}"

    @property
    def _host_port(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    async def dial(self) -> WebSocketTransport:
        """Connect to the browser; raises ConnectionError, saying what to do."""
        try:
            path = self.path or await asyncio.to_thread(self._find_path)
            return await WebSocketTransport.connect(f"ws://{self._host_port}{path}")
        except (OSError, HTTPException, ValueError) as error:
            raise ConnectionError(
                f"no browser at {self}: {error or type(error).__name__}; {START_HINT}"
            ) from None

    def _find_path(self) -> str:
        """Ask for the path of the browser's WebSocket; it changes with each start."""
        connection = HTTPConnection(self.host, self.port, timeout=HTTP_TIMEOUT_S)
        try:
            connection.request("GET", "/json/version")
            version = json.loads(connection.getresponse().read(1 << 20))
            return urlsplit(str(version["webSocketDebuggerUrl"])).path
        except (KeyError, TypeError):
            raise ValueError("what answers there is no browser") from None
        finally:
            connection.close()


def parse_address(text: str) -> Address:
    """Parse the address of a debugging port; raises ConfigError."""
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigError(f"cdp {text}: {error}") from None
    if parts.scheme not in ("http", "ws") or host is None or port is None:
        raise ConfigError(f"cdp {text}: write http://127.0.0.1:PORT, or the ws:// address of the browser")
    if host not in LOOPBACK:
        raise ConfigError(
            f"cdp {text}: only a browser on this machine may be reached (127.0.0.1, localhost or ::1);"
            " whoever reaches that port controls the browser"
        )
    if parts.scheme == "ws" and len(parts.path) < 2:
        raise ConfigError(f"cdp {text}: has no path; write http://{host}:{port} instead")
    return Address(host, port, parts.path if parts.scheme == "ws" else "")
