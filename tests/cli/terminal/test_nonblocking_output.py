"""A gateway whose output nobody reads goes on."""

import asyncio
import io
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import TextIO

import pytest

from afoot.cli.terminal.nonblocking_output import NonblockingOutput, nonblocking

Pipe = tuple[int, TextIO]


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    """The end of a pipe to read from, and a text stream into the other one."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as stream:
        yield reading, stream
    os.close(reading)


@pytest.mark.timeout(10)
def test_what_nobody_reads_is_dropped_and_told_later(pipe: Pipe) -> None:
    """X1, V2: the event loop never waits for a reader, and nobody takes the rest for the whole."""
    reading, stream = pipe
    output = NonblockingOutput(stream)

    async def fill() -> None:
        for _ in range(100):
            assert output.write("x" * 9_999 + "\n") == 10_000

    asyncio.run(fill())
    seen = 0
    os.set_blocking(reading, False)
    with suppress(BlockingIOError):
        while True:
            seen += len(os.read(reading, 65_536))
    output.write("back\n")
    text = os.read(reading, 65_536).decode()
    assert text == f"\n[{1_000_000 - seen} bytes are missing here: nobody read this output]\nback\n"


@pytest.mark.timeout(10)
def test_a_thread_waits_for_a_slow_reader(pipe: Pipe) -> None:
    """V2: nothing is missing where somebody reads, although more comes at once than a pipe takes."""
    reading, stream = pipe
    output = NonblockingOutput(stream)
    writer = threading.Thread(target=output.write, args=("y" * 500_000,))
    writer.start()
    seen = 0
    while seen < 500_000:
        seen += len(os.read(reading, 10_000))
    writer.join()


@pytest.mark.timeout(10)
def test_a_pipe_without_a_reader_is_an_error_as_ever() -> None:
    """V2: as an ordinary stream says it."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stream, pytest.raises(BrokenPipeError):
        NonblockingOutput(stream).write("x")


def test_a_stream_without_a_file_stays_as_it_is() -> None:
    """V2: as in a program that has replaced its own."""
    stream = io.StringIO()
    assert nonblocking(stream) is stream
