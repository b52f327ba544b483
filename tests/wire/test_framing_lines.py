"""Lines out of chunks: whole however they are cut, and never held where they are too long."""

from hypothesis import given
from hypothesis import strategies as st

from afoot.wire.framing import LineSplitter


@given(st.lists(st.binary().map(lambda text: text.replace(b"\n", b"")), max_size=8), st.data())
def test_lines_come_out_whole_however_they_are_cut(texts: list[bytes], data: st.DataObject) -> None:
    """U1: chunks of a pipe are not lines."""
    stream = b"".join(text + b"\n" for text in texts)
    lines, found = LineSplitter(10_000), list[bytes]()
    while stream:
        cut = data.draw(st.integers(1, len(stream)))
        found += lines.feed(stream[:cut])
        stream = stream[cut:]
    assert found == texts


def test_a_line_that_is_too_long_is_dropped_and_never_held() -> None:
    """U1: what comes behind it counts again."""
    lines = LineSplitter(1000)
    for _ in range(500):
        assert lines.feed(b"x" * 100) == []
        assert sum(map(len, lines._parts)) <= 1000
    assert lines.feed(b"x\nnext\n") == [b"next"]
    assert lines.dropped == 1
