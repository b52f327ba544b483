"""Frames between a gateway, its keeper and its children: bytes in, frames out."""

from random import Random

import pytest
from msgspec import Raw

from afoot.core.facts import NOTHING, Answer, Result
from afoot.providers.isolated.frames import (
    Begin,
    Done,
    Frame,
    Frames,
    FromChild,
    Garbage,
    Limits,
    Read,
    Reply,
    ToChild,
    Told,
    frame,
)

SAID = [
    Read(1, 2.5, "a\nb\x00"),
    Read(),
    Told(message="m", data=Raw(b'{"a":[1]}')),
    Done(Result(Raw(b"[]"), Raw(b'{"x":1}')), cpu_s=1.5, left=True),
]
TOLD = [
    Begin("tool", Raw(b'{"n":1}'), "c1", limits=Limits(cpu_s=1.5)),
    Reply(3, answer=Answer("accept", Raw(b"true"))),
]


@pytest.mark.parametrize(("kind", "said"), [(FromChild, SAID), (ToChild, TOLD)])
def test_frames_come_out_whole_however_they_arrive(kind: object, said: list[Frame]) -> None:
    """G1: cut anywhere."""
    random = Random(7)
    for _ in range(50):
        data, frames, found = b"".join(map(frame, said)), Frames[Frame](kind, 1000), list[Frame]()
        while data:
            n = random.randint(1, 40)
            found += frames.feed(data[:n])
            data = data[n:]
        assert list(map(frame, found)) == list(map(frame, said))


@pytest.mark.parametrize(
    "data", [b"hello, I am no frame", b"\xff" * 100, frame(Read(m="x" * 2000)), frame(Read())[:-2] + b"no"]
)
def test_what_is_no_frame_is_refused(data: bytes) -> None:
    """G1: words, noise, too much, half of one and something else."""
    frames = Frames[Frame](FromChild, 1000)
    with pytest.raises(Garbage):
        list(frames.feed(data + bytes(50)))


def test_nothing_is_left_out() -> None:
    """G1: an empty value takes no room, and is the same one again."""
    (told,) = Frames[Told](FromChild, 1000).feed(frame(Told(progress=1)))
    assert told.data is NOTHING and len(frame(told)) < 40
