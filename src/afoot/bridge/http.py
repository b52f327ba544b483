"""A small HTTP/1.1 client for the bridge: one connection a request, the response read as it comes."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from urllib.parse import urlsplit

from msgspec import Struct

from afoot.wire.gateway_proof import NONCE_BYTES, make_challenge

CONNECT_S = 5.0
CHUNK_BYTES = 1 << 16
MAX_HEAD_BYTES = 1 << 16


class Unreachable(Exception):
    """The address has no listener. Nothing was sent."""


class BrokenConnection(Exception):
    """The connection broke before the response was complete."""


class NotProved(Exception):
    """The peer has not proved to be our gateway: it is another program, or does not know our token."""


class HttpTarget(Struct, frozen=True):
    """The address of the gateway's MCP endpoint."""

    host: str
    port: int
    path: str = "/mcp"
    tls: bool = False

    @property
    def netloc(self) -> str:
        """Host and port as a `Host` header has them."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_target(url: str) -> HttpTarget:
    """The target that a URL names; raises ValueError."""
    parts = urlsplit(url if "://" in url else f"http://{url}")
    tls = parts.scheme == "https"
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
        raise ValueError(f"{url!r} is no address; it looks like http://127.0.0.1:23668")
    path = parts.path if parts.path.strip("/") else "/mcp"
    return HttpTarget(parts.hostname, parts.port or (443 if tls else 80), path, tls)


class GatewayResponse:
    """The response to one request; its connection stays open until `close`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.status = 0
        self.headers: dict[str, str] = {}

    @property
    def is_over(self) -> bool:
        """Whether the connection has ended."""
        return self._reader.at_eof() or self._writer.is_closing()

    def close(self) -> None:
        """Close the connection; what was sent is still delivered."""
        self._writer.close()

    async def messages(self) -> AsyncIterator[list[bytes]]:
        """Messages as they come, each as one line: the only one of a JSON body, or the events of a stream."""
        if self.headers.get("content-type", "").startswith("text/event-stream"):
            events = EventData()
            async for chunk in self._chunks():
                if found := events.feed(chunk):
                    yield found
        elif body := await self.body():
            yield [body.replace(b"\r", b" ").replace(b"\n", b" ")]  # in JSON they occur only between tokens

    async def body(self) -> bytes:
        """The complete body; raises BrokenConnection."""
        return b"".join([chunk async for chunk in self._chunks()])

    async def read_head(self) -> None:
        """Read status and headers; raises Broken."""
        try:
            while self.status < 200:  # informational responses come before the final one
                text = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                first, *rest = text[:-4].split("\r\n")
                self.status = int(first.split(" ", 2)[1])
                pairs = (line.partition(":") for line in rest)
                self.headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        except (OSError, EOFError, asyncio.LimitOverrunError, ValueError, IndexError) as error:
            raise BrokenConnection(str(error) or type(error).__name__) from None

    async def _chunks(self) -> AsyncIterator[bytes]:
        try:
            if self.headers.get("transfer-encoding", "").lower() == "chunked":
                while size := int((await self._reader.readuntil(b"\r\n")).split(b";")[0], 16):
                    async for piece in self._exactly(size):
                        yield piece
                    await self._reader.readexactly(2)
            elif "content-length" in self.headers:
                async for piece in self._exactly(int(self.headers["content-length"])):
                    yield piece
            elif self.status != 204:
                while piece := await self._reader.read(CHUNK_BYTES):
                    yield piece
        except (OSError, EOFError, asyncio.LimitOverrunError, ValueError) as error:
            raise BrokenConnection(str(error) or type(error).__name__) from None

    async def _exactly(self, size: int) -> AsyncIterator[bytes]:
        while size:
            piece = await self._reader.read(min(size, CHUNK_BYTES))
            if not piece:
                raise EOFError("the connection was closed")
            size -= len(piece)
            yield piece


async def send_request(
    to: HttpTarget, method: str, headers: Mapping[str, str], body: bytes = b"", secret: str = ""
) -> GatewayResponse:
    """Send a request and read the response's head; raises Unreachable, BrokenConnection.

    The caller closes it. With a `secret`, the other end of the connection must first prove that it knows it;
    raises NotProved.
    """
    try:
        async with asyncio.timeout(CONNECT_S):
            reader, writer = await asyncio.open_connection(
                to.host, to.port, limit=MAX_HEAD_BYTES, ssl=True if to.tls else None
            )
    except OSError as error:
        raise Unreachable(str(error) or "it does not answer") from None
    answer = GatewayResponse(reader, writer)
    try:
        if secret and not to.tls:  # with TLS, the certificate is the proof
            await _check_gateway(to, secret, reader, writer)
        lines = [f"{method} {to.path} HTTP/1.1", f"host: {to.netloc}", "connection: close"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if method == "POST":
            lines.append(f"content-length: {len(body)}")
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
        await writer.drain()
        await answer.read_head()
    except OSError as error:
        answer.close()
        raise BrokenConnection(str(error) or type(error).__name__) from None
    except BaseException:
        answer.close()
        raise
    return answer


async def _check_gateway(
    to: HttpTarget, secret: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Let the other end prove that it knows a secret (S6); raises NotProved, BrokenConnection."""
    asked = make_challenge(to.netloc, secret, os.urandom(NONCE_BYTES))
    writer.write(f"GET {asked.target} HTTP/1.1\r\nhost: {to.netloc}\r\n\r\n".encode("latin-1"))
    answer = GatewayResponse(reader, writer)
    await answer.read_head()
    if answer.status == 404:
        raise NotProved("it does not know this token, which was not sent")
    length = answer.headers.get("content-length", "")
    if not length.isdecimal() or int(length) > MAX_HEAD_BYTES:
        raise NotProved("it is another program than the gateway, so no token was sent")
    if not asked.is_met(await answer.body()) or answer.status != 200:
        raise NotProved("it has not proved to be the gateway, so no token was sent")


class EventData:
    """Extracts the data of server-sent events from bytes; a long event is scanned only once."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of the events that these bytes complete."""
        held = self._held
        start = max(0, len(held) - 1)
        held += chunk.replace(b"\r", b"")
        end = held.rfind(b"\n\n", start)
        if end < 0:
            return []
        whole = bytes(held[:end])
        del held[: end + 2]
        return [data for block in whole.split(b"\n\n") if (data := _data(block))]


def _data(block: bytes) -> bytes:
    lines = (line[5:].strip() for line in block.split(b"\n") if line.startswith(b"data:"))
    return b" ".join(lines)
