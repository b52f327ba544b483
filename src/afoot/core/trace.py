"""The trace a call is part of: what its caller said of it, and what goes on to whatever it calls (V3).

The ids of spans are made of the call's own id, so that they are known before there is a span.
"""

import re
from typing import Protocol

from afoot.core.call import Call
from afoot.core.facts import Trace

HERE = Trace(begins=True)  # of a call whose caller sent none, where spans are made
MOST_STATE, MOST_BAGGAGE = 512, 8192  # characters that the W3C has everybody pass on

# `ff` is no version, and ids are never all zeros.
_PARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


class Carrier(Protocol):
    """The `_meta` of a request, where anything may stand."""

    traceparent: object
    tracestate: object
    baggage: object


def carried(meta: Carrier) -> Trace | None:
    """What a caller's `_meta` says of its trace, as far as it can be meant; None if it says nothing."""
    parent, state, baggage = meta.traceparent, meta.tracestate, meta.baggage
    known = parent if isinstance(parent, str) and _is_parent(parent) else ""
    shown = state if known and isinstance(state, str) and len(state) <= MOST_STATE else ""
    luggage = baggage if isinstance(baggage, str) and len(baggage) <= MOST_BAGGAGE else ""
    return Trace(known, shown, luggage) if known or luggage else None


def trace_id(call: Call) -> str | None:
    """The id of the trace that this call is part of, if of any."""
    trace = call.opened.trace
    if trace is None or not (trace.parent or trace.begins):
        return None
    return trace.parent[3:35] or call.id[-32:]


def parent_id(call: Call) -> str | None:
    """The id of the caller's span."""
    trace = call.opened.trace
    return trace.parent[36:52] if trace is not None and trace.parent else None


def flags(call: Call) -> str:
    """Whether spans of this trace are wanted, as its caller said; of one that begins here, they are."""
    trace = call.opened.trace
    return trace.parent[53:55] if trace is not None and trace.parent else "01"


def span_id(call: Call) -> str:
    """The id of the call's own span."""
    return call.id[-16:]


def errand_id(call: Call, attempt: int) -> str:
    """The id of the span of what an attempt asks another server."""
    return f"{int(call.id[-32:-16], 16) ^ attempt:016x}"


def handed_down(call: Call, spans: bool) -> Trace | None:
    """The trace of a call that this one makes; without spans of our own, as it came."""
    trace = call.opened.trace
    if not spans:
        return trace
    return _with_parent(call, span_id(call))


def onward(call: Call, attempt: int, spans: bool) -> dict[str, str]:
    """What goes into the `_meta` of a request to another server."""
    trace = _with_parent(call, errand_id(call, attempt)) if spans else call.opened.trace
    if trace is None:
        return {}
    found = {"traceparent": trace.parent, "tracestate": trace.state, "baggage": trace.baggage}
    return {key: text for key, text in found.items() if text}


def _is_parent(text: str) -> bool:
    """Of versions to come only the beginning is known."""
    return _PARENT.match(text) is not None and (len(text) == 55 or (text[:2] != "00" and text[55] == "-"))


def _with_parent(call: Call, span: str) -> Trace:
    trace = call.opened.trace or HERE
    whole = f"00-{trace_id(call) or call.id[-32:]}-{span}-{flags(call)}"
    return Trace(whole, trace.state, trace.baggage)
