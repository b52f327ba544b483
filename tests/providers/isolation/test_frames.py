"""Frames between a gateway, its fork server and its children: bytes in, frames out."""

from random import Random

import pytest
from msgspec import Raw

from afoot.core.facts import NOTHING, Answer, Result
from afoot.providers.isolation.frames import (
    CallDone,
    ContentReport,
    FrameDecoder,
    FromChild,
    InvalidFrame,
    IpcMessage,
    ProgressReading,
    RequestReply,
    ResourceLimits,
    RunCall,
    ToChild,
    encode_frame,
)

SAID = [
    ProgressReading(1, 2.5, "a\nb\x00"),
    ProgressReading(),
    ContentReport(message="m", data=Raw(b'{"a":[1]}')),
    CallDone(Result(Raw(b"[]"), Raw(b'{"x":1}')), cpu_s=1.5, left=True),
]
TOLD = [
    RunCall("tool", Raw(b'{"n":1}'), "c1", limits=ResourceLimits(cpu_s=1.5)),
    RequestReply(3, answer=Answer("accept", Raw(b"true"))),
]


@pytest.mark.parametrize(("kind", "said"), [(FromChild, SAID), (ToChild, TOLD)])
def test_frames_come_out_whole_however_they_arrive(kind: object, said: list[IpcMessage]) -> None:
    """G1: cut anywhere."""
    random = Random(7)
    for _ in range(50):
        data, frames, found = (
            b"".join(map(encode_frame, said)),
            FrameDecoder[IpcMessage](kind, 1000),
            list[IpcMessage](),
        )
        while data:
            n = random.randint(1, 40)
            found += frames.feed(data[:n])
            data = data[n:]
        assert list(map(encode_frame, found)) == list(map(encode_frame, said))


@pytest.mark.parametrize(
    "data",
    [
        b"hello, I am no frame",
        b"\xff" * 100,
        encode_frame(ProgressReading(m="x" * 2000)),
        encode_frame(ProgressReading())[:-2] + b"no",
    ],
)
def test_what_is_no_frame_is_refused(data: bytes) -> None:
    """G1: words, noise, too much, half of one and something else."""
    frames = FrameDecoder[IpcMessage](FromChild, 1000)
    with pytest.raises(InvalidFrame):
        list(frames.feed(data + bytes(50)))


def test_nothing_is_left_out() -> None:
    """G1: an empty value takes no room, and is the same one again."""
    (told,) = FrameDecoder[ContentReport](FromChild, 1000).feed(encode_frame(ContentReport(progress=1)))
    assert told.data is NOTHING and len(encode_frame(told)) < 40
