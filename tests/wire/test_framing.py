"""Events out and in again, however the bytes are cut."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afoot.wire import framing
from afoot.wire.framing import EventParser, ServerSentEvent

LINE = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"))
NAME = st.text(st.characters(codec="ascii", exclude_characters="\r\n\0 :"), max_size=8)


def parsed(stream: bytes, *cuts: int) -> list[ServerSentEvent]:
    """The events in a stream that arrives in pieces."""
    parser = EventParser()
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    return [event for start, end in pairwise(places) for event in parser.feed(stream[start:end])]


def test_a_message_is_one_event_with_one_line_of_data() -> None:
    """Deliver 5: the form that every client reads; no id without replay."""
    assert parsed(framing.MESSAGE_PREFIX + b'{"a":1}' + framing.MESSAGE_SUFFIX) == [
        ServerSentEvent('{"a":1}')
    ]


def test_a_comment_is_no_event() -> None:
    """C5: a keepalive is nothing to a reader."""
    assert framing.comment_frame("alive") == b": alive\n\n"
    assert parsed(
        framing.comment_frame("alive") + framing.event_frame(b"x") + framing.comment_frame("alive")
    ) == [ServerSentEvent("x")]


@given(st.lists(st.tuples(LINE, NAME, NAME), max_size=5), st.lists(st.integers(0, 400)))
def test_events_come_out_as_they_went_in_however_they_are_cut(
    events: list[tuple[str, str, str]], cuts: list[int]
) -> None:
    """H2: chunks of the network are not chunks of the stream."""
    stream = b"".join(framing.event_frame(data.encode(), event, mark) for data, event, mark in events)
    assert parsed(stream, *cuts) == [
        ServerSentEvent(data, event or "message", mark) for data, event, mark in events
    ]


@given(st.lists(LINE, min_size=1, max_size=4), st.lists(st.integers(0, 200)))
def test_other_servers_may_end_lines_in_another_way(lines: list[str], cuts: list[int]) -> None:
    """U1: CRLF, and data of several lines."""
    stream = "".join(f"data: {line}\r\n" for line in lines) + "\r\n"
    assert parsed(stream.encode(), *cuts) == [ServerSentEvent("\n".join(lines))]


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data:x\n\n", [ServerSentEvent("x")]),
        (b"data\n\n", [ServerSentEvent("")]),
        (b"event: ping\n\n", []),
        (b"id: 1\nretry: 5\n\ndata: x\n\n", [ServerSentEvent("x")]),
        (b"data: x", []),
        (b"data: x\n", []),
        (b"data: \xff\n\n", [ServerSentEvent("\N{REPLACEMENT CHARACTER}")]),
        (b"\n\n\n\ndata: x\n\n", [ServerSentEvent("x")]),
    ],
)
def test_odd_streams(stream: bytes, events: list[ServerSentEvent]) -> None:
    """Bad input: what is not whole is not an event."""
    assert parsed(stream) == events


def test_where_to_go_on_after_a_break_is_remembered() -> None:
    """D2: the last id and the wish to wait hold until others come, also from blocks that are no events."""
    parser = EventParser()
    assert list(parser.feed(b"id: 7\nretry: 250\n\nid: 8\ndata: \n\ndata: x\n\nretry: soon\n\n")) == [
        ServerSentEvent("", id="8"),
        ServerSentEvent("x"),
    ]
    assert (parser.last_id, parser.retry_ms) == ("8", 250)


def test_an_event_that_is_too_long_is_dropped_and_never_held() -> None:
    """U1: what comes behind it counts again."""
    parser = EventParser(limit=1000)
    for _ in range(500):
        assert list(parser.feed(b"data: " + b"x" * 100)) == []
        assert sum(map(len, parser._parts)) <= 1000
    assert list(parser.feed(b"\n")) == []
    assert list(parser.feed(b"\ndata: y\n\n")) == [ServerSentEvent("y")]
    assert parser.dropped == 1
