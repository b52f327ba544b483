"""stdin and stdout as a wire: a line a message, whatever stands at the other end."""

import asyncio
import os
import stat
import sys
import threading


class TooLong(Exception):
    """A line went over the limit; it was dropped to its end."""


async def pipes(limit: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """The wire on stdin and stdout; from here on, whatever prints writes to stderr."""
    loop = asyncio.get_running_loop()
    wire_in, wire_out = _piped(os.dup(0), out=False), _piped(os.dup(1), out=True)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    sys.stdout.flush()
    os.dup2(2, 1)
    reader = asyncio.StreamReader(limit=limit)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(wire_in, "rb", 0))
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(wire_out, "wb", 0)
    )
    return reader, asyncio.StreamWriter(transport, protocol, None, loop)


async def line(reader: asyncio.StreamReader) -> bytes | None:
    """The next line, or None at the end; raises TooLong."""
    try:
        return await reader.readuntil(b"\n")
    except asyncio.IncompleteReadError as rest:
        return rest.partial or None
    except asyncio.LimitOverrunError as over:
        await _skip(reader, over.consumed)
        raise TooLong from None


async def _skip(reader: asyncio.StreamReader, consumed: int) -> None:
    while True:
        await reader.readexactly(consumed)
        try:
            await reader.readuntil(b"\n")
            return
        except asyncio.LimitOverrunError as over:
            consumed = over.consumed
        except asyncio.IncompleteReadError:
            return


def _piped(end: int, *, out: bool) -> int:
    """The same end as a pipe: a loop takes no file, terminal or /dev/null, so a thread carries for it."""
    mode = os.fstat(end).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        return end
    reading, writing = os.pipe()
    ends = (reading, end) if out else (end, writing)
    threading.Thread(target=_carry, args=ends, name="afoot-stdio", daemon=not out).start()
    return writing if out else reading


def _carry(source: int, sink: int) -> None:
    while chunk := os.read(source, 65_536):
        while chunk:
            chunk = chunk[os.write(sink, chunk) :]
    os.close(sink)
