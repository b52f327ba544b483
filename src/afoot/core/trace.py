"""Functions for the W3C trace of a call: read from its caller, and passed on to the servers it calls (V3).

The ids of spans are parts of the call's own id, so that they are known before there is a span.
"""

import re
from typing import Protocol

from afoot.core.call import Call
from afoot.core.facts import Trace

NEW_TRACE = Trace(begins=True)  # of a call whose caller sent none, where spans are made
MAX_STATE_CHARS, MAX_BAGGAGE_CHARS = 512, 8192  # the W3C asks everybody to pass on this much

# `ff` is no version, and ids are never all zeros.
_PARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


class TraceMeta(Protocol):
    """The trace fields in the `_meta` of a request; a client may send anything in them."""

    traceparent: object
    tracestate: object
    baggage: object


def trace_from_meta(meta: TraceMeta) -> Trace | None:
    """The trace in a caller's `_meta`, without its invalid fields; None if there is none."""
    parent = meta.traceparent
    if not isinstance(parent, str) or not _is_parent(parent):
        parent = ""
    state = meta.tracestate
    if not parent or not isinstance(state, str) or len(state) > MAX_STATE_CHARS:
        state = ""
    baggage = meta.baggage
    if not isinstance(baggage, str) or len(baggage) > MAX_BAGGAGE_CHARS:
        baggage = ""
    return Trace(parent, state, baggage) if parent or baggage else None


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
    """The trace flags of its caller, which say whether spans are wanted; of a trace that begins here, yes."""
    trace = call.opened.trace
    return trace.parent[53:55] if trace is not None and trace.parent else "01"


def span_id(call: Call) -> str:
    """The id of the call's own span."""
    return call.id[-16:]


def upstream_span_id(call: Call, attempt: int) -> str:
    """The id of the span of the request that an attempt sends to another server."""
    return f"{int(call.id[-32:-16], 16) ^ attempt:016x}"


def child_trace(call: Call, spans: bool) -> Trace | None:
    """The trace of a call below this one; where we make no spans, it is passed on as it came."""
    trace = call.opened.trace
    if not spans:
        return trace
    return _with_parent(call, span_id(call))


def outgoing_trace(call: Call, attempt: int, spans: bool) -> dict[str, str]:
    """The trace fields for the `_meta` of a request to another server."""
    trace = _with_parent(call, upstream_span_id(call, attempt)) if spans else call.opened.trace
    if trace is None:
        return {}
    found = {"traceparent": trace.parent, "tracestate": trace.state, "baggage": trace.baggage}
    return {key: text for key, text in found.items() if text}


def _is_parent(text: str) -> bool:
    """Whether a text is a `traceparent`; of later versions only the beginning is defined."""
    return _PARENT.match(text) is not None and (len(text) == 55 or (text[:2] != "00" and text[55] == "-"))


def _with_parent(call: Call, span: str) -> Trace:
    trace = call.opened.trace or NEW_TRACE
    whole = f"00-{trace_id(call) or call.id[-32:]}-{span}-{flags(call)}"
    return Trace(whole, trace.state, trace.baggage)
