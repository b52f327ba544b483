"""Bodies of requests as they come in pieces."""

import time
from collections.abc import Iterator

import pytest

from afoot.serve.mcp.asgi import Message, check_declared_length, read_rest
from afoot.wire.jsonrpc import Fault

PIECES = 300_000


async def test_a_body_that_comes_byte_by_byte_takes_no_longer_than_its_length() -> None:
    """S5: each byte copied everything before it, which took 4.6 s of computing for this one."""

    def pieces() -> Iterator[Message]:
        for number in range(PIECES):
            yield {"type": "http.request", "body": b"x", "more_body": number < PIECES - 1}

    messages = pieces()

    async def receive() -> Message:
        return next(messages)

    begun = time.process_time()
    assert len(await read_rest(next(messages), receive, PIECES)) == PIECES
    assert time.process_time() - begun < 2


@pytest.mark.parametrize("declared", [b"101", b"0101", b"1" + b"0" * 5000])
def test_a_length_over_the_limit_is_refused_before_the_body_comes(declared: bytes) -> None:
    """S5: the bound holds before anybody is known."""
    with pytest.raises(Fault, match="max_body_bytes"):
        check_declared_length(declared, 100)


@pytest.mark.parametrize("declared", [b"", b"0", b"100", b"0" * 5000 + b"100", b"none"])
def test_a_length_within_the_limit_is_let_in(declared: bytes) -> None:
    """S5: the bound holds before anybody is known."""
    check_declared_length(declared, 100)
