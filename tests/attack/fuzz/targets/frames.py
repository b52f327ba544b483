"""Targets for frames of processes and browsers, and for rows of the history."""

import contextlib

import msgspec
from msgspec import Raw

from afoot.core.facts import Entry, Finished, Opened, Result, Started
from afoot.providers.isolation import frames
from afoot.providers.isolation.frames import FrameDecoder, InvalidFrame, encode_frame
from afoot.store import codec
from afoot.wire import extension
from afoot.wire.extension import BadFrame
from tests.attack.fuzz.target import Target, from_deeper, pieces

FRAME_BYTES = 2000
KINDS = (frames.FromChild, frames.ToChild, frames.ToForkServer, frames.FromForkServer)


def isolation_frames(data: bytes) -> None:
    """Bytes of a child process, however they are cut; no frame is longer than the bound."""
    for kind in KINDS:
        whole = from_deeper(lambda kind=kind: _decode(kind, [data]))
        assert _decode(kind, list(pieces(data))) == whole, "it depends on how the bytes were cut"
        for message in whole:
            assert isinstance(message, frames.IpcMessage)
            sent = encode_frame(message)
            assert [
                encode_frame(one)
                for one in _decode(kind, [sent], len(sent))
                if isinstance(one, frames.IpcMessage)
            ] == [sent]


def link_frames(data: bytes) -> None:
    """A frame of the extension; what is read can be written and read again."""
    for text in (data, data.decode("utf-8", "replace"), data.decode("utf-8", "surrogateescape")):
        try:
            message = from_deeper(lambda text=text: extension.read_frame(text))
        except BadFrame:
            continue
        sent = extension.write_frame(message)
        assert extension.write_frame(extension.read_frame(sent)) == sent
        if isinstance(message, extension.LinkProof):
            nonce = extension.read_nonce(message.nonce)
            nonces = extension.Nonces(b"n" * 32, nonce or b"")
            assert not extension.is_valid_proof(b"k" * 32, extension.BROWSER_SIDE, nonces, message.mac)


def history_rows(data: bytes) -> None:
    """Bodies of damaged rows: they are refused as unreadable, and what is read can be stored again."""
    with contextlib.suppress(msgspec.DecodeError):
        found = from_deeper(lambda: codec.decode_facts([(9, "c", 9, data)]))
        if found:
            body = codec.encode_repaired(
                [Entry(entry.call, entry.seq, codec.storable(entry.fact)) for _, entry in found]
            )
            assert len(codec.decode_facts([(9, "c", 9, body)])) == len(found)
    with contextlib.suppress(msgspec.DecodeError):
        from_deeper(lambda: codec.decode_samples([("c", 1, 0, data)]))


def _decode(kind: object, parts: list[bytes], max_bytes: int = FRAME_BYTES) -> list[object]:
    decoder: FrameDecoder[object] = FrameDecoder(kind, max_bytes)
    found: list[object] = []
    with contextlib.suppress(InvalidFrame):
        for part in parts:
            found.extend(decoder.feed(part))
    return found


_FACTS = msgspec.json.encode(
    [
        Opened(1.0, "t", "s", "c", Raw(b'{"a":1}')),
        Started(2.0),
        Finished(3.0, "ok", Result(Raw(b'[{"type":"text","text":"a"}]'))),
    ]
)
_PROGRESS = b'{"room":"a","run":"r","seq":1,"reports":[{"progress":1,"data":{"x":1}},{"alive":true}]}'

TARGETS = (
    Target(
        "isolation_frames",
        isolation_frames,
        (
            encode_frame(frames.ProgressReading(1, 2.5, "m")) + encode_frame(frames.Heartbeat()),
            encode_frame(frames.ChildExit(1, -9, 0.5)) + encode_frame(frames.OutputLines(1, "stdout", ["a"])),
            encode_frame(frames.CallDone(trouble=frames.RemoteError("m"))),
            encode_frame(frames.RunCall("t", Raw(b"{}"), "c")),
        ),
        (frames.MAGIC, b"\0\0\0\x02{}", b'{"type":"r","p":1}', b'{"type":"done"}'),
    ),
    Target(
        "link_frames",
        link_frames,
        (
            b'{"jsonrpc":"2.0","method":"tool.progress","params":' + _PROGRESS + b"}",
            b'{"method":"link.proof","params":{"mac":"' + b"a" * 64 + b'","nonce":"' + b"b" * 64 + b'"}}',
            b'{"method":"link.hello","params":{"version":"1","profile":"p","rooms":[{"id":"a","tab":"1"}]}}',
            b'{"method":"tab.tools","params":{"room":"a","tools":[{"name":"t","inputSchema":{"a":1}}]}}',
            b'{"method":"tool.result","params":{"room":"a","run":"r","seq":2,"value":"\\ud800\\\\ud800"}}',
            b'{"method":"panel.answer","params":{"question":"q","content":{}}}',
        ),
        (b"\\ud83d", b"\\udc00", b"\\\\", b'"params":', b'"tool.log"', b'"tab.state"'),
    ),
    Target(
        "history_rows",
        history_rows,
        (_FACTS, b'{"at":1.0,"progress":1}', b"[]"),
        (b'"type":', b'"Finished"', b'"at":'),
    ),
)
