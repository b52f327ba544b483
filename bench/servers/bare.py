"""The upper bound: an asyncio server that answers `noop` and `ticks` on HTTP, without protocol or checks."""

import asyncio
import re
import sys
from typing import cast

import uvloop

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
ANSWER = (
    b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"ok"}],"resultType":"complete"}}'
)
NOTE = (
    b'data: {"jsonrpc":"2.0","method":"notifications/progress",'
    b'"params":{"progressToken":%d,"progress":%d,"total":%d,"message":"tick"}}\n\n'
)
BURST = 100


class Bare(asyncio.Protocol):
    """One connection; it finds the id by search and never parses."""

    transport: asyncio.Transport
    task: "asyncio.Future[None]"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's transport is not a subclass

    def data_received(self, data: bytes) -> None:
        found = re.search(rb'"id":(\d+)', data)
        number = int(found[1]) if found else 0
        ticks = re.search(rb'"n":(\d+)', data)
        if ticks is None:
            body = ANSWER % number
            self.transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
        else:
            self.task = asyncio.ensure_future(self._tick(number, int(ticks[1])))

    async def _tick(self, number: int, total: int) -> None:
        self.transport.write(HEAD)
        for start in range(0, total, BURST):
            frames = b"".join(
                [NOTE % (number, i + 1, total) for i in range(start, min(start + BURST, total))]
            )
            self.transport.write(b"%x\r\n%s\r\n" % (len(frames), frames))
            await asyncio.sleep(0)
        last = b"data: " + ANSWER % number + b"\n\n"
        self.transport.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(last), last))


async def main(port: int) -> None:
    """Serve until killed."""
    server = await asyncio.get_running_loop().create_server(Bare, "127.0.0.1", port, backlog=2048)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[2])))
