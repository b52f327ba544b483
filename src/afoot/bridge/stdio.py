"""stdin and stdout as a wire, one message a line: `open_stdio` and `read_line`."""

import asyncio
import os
import stat
import sys
import threading


class LineTooLong(Exception):
    """A line was over the limit, and was dropped."""


async def open_stdio(limit: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Take stdin and stdout as the wire; from here on, prints go to stderr."""
    loop = asyncio.get_running_loop()
    wire_in, wire_out = _as_pipe(os.dup(0), out=False), _as_pipe(os.dup(1), out=True)
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


async def read_line(reader: asyncio.StreamReader) -> bytes | None:
    """The next line, or None at the end; raises LineTooLong."""
    try:
        return await reader.readuntil(b"\n")
    except asyncio.IncompleteReadError as rest:
        return rest.partial or None
    except asyncio.LimitOverrunError as over:
        await _skip(reader, over.consumed)
        raise LineTooLong from None


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


def _as_pipe(end: int, *, out: bool) -> int:
    """The same end as a pipe: a loop accepts no file, terminal or /dev/null, so a thread copies for it."""
    mode = os.fstat(end).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        return end
    reading, writing = os.pipe()
    ends = (reading, end) if out else (end, writing)
    threading.Thread(target=_copy, args=ends, name="afoot-stdio", daemon=not out).start()
    return writing if out else reading


def _copy(source: int, sink: int) -> None:
    while chunk := os.read(source, 65_536):
        while chunk:
            chunk = chunk[os.write(sink, chunk) :]
    os.close(sink)
