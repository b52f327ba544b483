"""`Target` is one reader of bytes from outside, as a function that fails only on a defect.

The functions below it are what targets share: bytes that arrive in pieces, and a deeper stack.
"""

from collections.abc import Callable, Iterator
from typing import TypeVar

from msgspec import Struct

T = TypeVar("T")
DEEPER = 40  # frames; a message is read at several depths of the stack, and its parts at deeper ones


class Target(Struct, frozen=True):
    """A reader under test. `run` raises nothing that the reader documents: what it raises is a finding."""

    name: str
    run: Callable[[bytes], None]
    seeds: tuple[bytes, ...]  # small inputs that the reader accepts, or nearly
    tokens: tuple[bytes, ...] = ()  # words of its format
    max_bytes: int = 16_384
    examples: int = 60  # of the short run in the tests
    is_quick: bool = True  # a run takes far less than a millisecond, so that its growth can be measured


def pieces(data: bytes) -> Iterator[bytes]:
    """The data in pieces whose sizes depend on the data alone, so that a finding can be repeated."""
    at = 0
    while at < len(data):
        size = 1 + (data[at] * 7 + at) % 13
        yield data[at : at + size]
        at += size


def from_deeper(act: Callable[[], T], frames: int = DEEPER) -> T:
    """Call a function from so many frames further down: code runs at many depths of the stack."""
    return act() if not frames else from_deeper(act, frames - 1)


def as_text(data: bytes) -> str:
    """The data as a text; a header comes so."""
    return data.decode("latin-1")
