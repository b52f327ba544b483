"""The trace of a call: what of a caller's words is believed, and what goes on."""

import pytest
from msgspec import Raw, Struct

from afoot.core import trace
from afoot.core.call import Call
from afoot.core.facts import Opened, Trace

ID = "1a1e29693355bad0000000000000001cafe00000000000f"
PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


class Meta(Struct):
    """What stands in the `_meta` of a request."""

    traceparent: object = None
    tracestate: object = None
    baggage: object = None


def call(given: Trace | None) -> Call:
    """A call that came with this trace."""
    return Call(ID, Opened(1.0, "export", "local", "local", Raw(b"{}"), trace=given))


@pytest.mark.parametrize(
    "odd",
    [
        5,
        "",
        "nonsense",
        PARENT.upper(),
        PARENT[:-1],
        PARENT + "-more",
        PARENT.replace("4bf92f3577b34da6a3ce929d0e0e4736", "0" * 32),
        PARENT.replace("00f067aa0ba902b7", "0" * 16),
        "ff" + PARENT[2:],
        {"a": 1},
    ],
)
def test_a_traceparent_that_is_none_is_taken_for_none(odd: object) -> None:
    """V3: a broken trace breaks no call, and its state goes with it; baggage stands for itself."""
    assert trace.trace_from_meta(Meta(odd, "a=1")) is None
    assert trace.trace_from_meta(Meta(odd, "a=1", "user=7")) == Trace(baggage="user=7")


def test_a_version_to_come_is_known_by_its_beginning() -> None:
    """V3: as the W3C asks of everybody."""
    later = "cc" + PARENT[2:] + "-what-will-be"
    known = trace.trace_from_meta(Meta(later))
    assert known is not None
    assert trace.trace_id(call(known)) == PARENT[3:35]
    assert trace.flags(call(known)) == "01"


def test_what_is_longer_than_everybody_passes_on_is_left_behind() -> None:
    """V3: nobody fills the history with baggage."""
    assert trace.trace_from_meta(Meta(PARENT, "s" * 513, "b" * 8193)) == Trace(PARENT)


def test_without_spans_of_our_own_everything_goes_on_as_it_came() -> None:
    """V3: a gateway that tells nobody is no gap in a trace."""
    given = Trace(PARENT, "a=1", "user=7")
    assert trace.outgoing_trace(call(given), 1, spans=False) == {
        "traceparent": PARENT,
        "tracestate": "a=1",
        "baggage": "user=7",
    }
    assert trace.child_trace(call(given), spans=False) == given
    assert trace.outgoing_trace(call(None), 1, spans=False) == {}


def test_with_spans_what_goes_on_names_the_span_of_this_attempt() -> None:
    """V3: the same trace, the flags of the caller, and another parent for every attempt."""
    unwanted = call(Trace(PARENT[:-2] + "00", "a=1"))
    first, second = (trace.outgoing_trace(unwanted, attempt, spans=True) for attempt in (1, 2))
    assert first["traceparent"] == f"00-{PARENT[3:35]}-{trace.upstream_span_id(unwanted, 1)}-00"
    assert first["tracestate"] == "a=1"
    assert first["traceparent"] != second["traceparent"]
    below = trace.child_trace(unwanted, spans=True)
    assert below == Trace(f"00-{PARENT[3:35]}-{trace.span_id(unwanted)}-00", "a=1")


def test_a_trace_that_begins_here_has_the_random_part_of_the_calls_id() -> None:
    """V3: nothing has to be made up or kept."""
    new = call(trace.NEW_TRACE)
    assert trace.trace_id(new) == ID[-32:]
    assert trace.parent_id(new) is None
    assert trace.outgoing_trace(new, 1, spans=True) == {
        "traceparent": f"00-{ID[-32:]}-{trace.upstream_span_id(new, 1)}-01"
    }


def test_baggage_alone_is_no_trace() -> None:
    """V3: nobody is shown the id of a trace that there is not."""
    assert trace.trace_id(call(Trace(baggage="user=7"))) is None
    assert trace.trace_id(call(None)) is None
