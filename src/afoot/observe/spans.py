"""`Spans` makes the spans of ended calls, by OpenTelemetry's conventions for MCP; no content is in them."""

from collections.abc import Mapping
from contextlib import suppress

from msgspec import DecodeError, Raw, UnsetType, json
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags, TraceState

from afoot.config.tables import BUILT_IN_SERVERS
from afoot.core import trace
from afoot.core.call import Call
from afoot.core.facts import Finished
from afoot.core.names import own_name
from afoot.core.ports import OpeningRequest
from afoot.observe.call_notes import AttemptTimes, CallNotes, Milestone
from afoot.observe.figures import METHOD, error_type

STDIO = "stdio"  # the caller at the other end of a pipe; any other comes over HTTP
TOKEN_CHARS = 200
SESSION = "session:"  # how the name of a caller begins that is a session of protocol 2025-11-25

Attributes = Mapping[str, str | int | float | bool]


class Spans:
    """Makes the spans of calls, all of one service."""

    def __init__(self, resource: Resource, scope: InstrumentationScope) -> None:
        self._resource = resource
        self._scope = scope

    def of(self, notes: CallNotes) -> list[ReadableSpan]:
        """The call's own span, and one for each time it asked another server."""
        call, end = notes.live.call, notes.live.call.end
        if end is None:
            return []
        is_ours = call.opened.server in BUILT_IN_SERVERS
        return [
            self._own(notes, end),
            *([] if is_ours else [self._upstream(notes, end, one) for one in notes.tries]),
        ]

    def _own(self, notes: CallNotes, end: Finished) -> ReadableSpan:
        call = notes.live.call
        parent = trace.parent_id(call)
        is_below = call.opened.parent is not None and _opened_by(notes) is None
        return ReadableSpan(
            f"{METHOD} {call.opened.tool}",
            _context(call, trace.span_id(call)),
            None if parent is None else _context(call, parent, is_remote=not is_below),
            self._resource,
            {**about(call), **_request(notes), **_result(call, end)},
            [_event(one) for one in notes.milestones],
            kind=SpanKind.INTERNAL if is_below else SpanKind.SERVER,
            status=_status(error_type(end), end),
            start_time=_ns(call.opened.at),
            end_time=_ns(end.at),
            instrumentation_scope=self._scope,
        )  # fmt: skip

    def _upstream(self, notes: CallNotes, end: Finished, one: AttemptTimes) -> ReadableSpan:
        call, tool = notes.live.call, notes.live.tool
        name = own_name(tool)
        error = "runner_died" if one.why else error_type(end)
        failed = {"error.type": error} if error else {}
        tried = {"afoot.attempt": one.number} if one.number > 1 else {}
        return ReadableSpan(
            f"{METHOD} {name}",
            _context(call, trace.upstream_span_id(call, one.number)),
            _context(call, trace.span_id(call)),
            self._resource,
            {**about(call), "gen_ai.tool.name": name, **tried, **failed},
            kind=SpanKind.CLIENT,
            status=_status(error, None if one.why else end),
            start_time=_ns(one.began),
            end_time=_ns(end.at if one.over is None else one.over),
            instrumentation_scope=self._scope,
        )  # fmt: skip


def about(call: Call) -> dict[str, str | int | float | bool]:
    """The attributes that all spans of a call have."""
    return {
        "mcp.method.name": METHOD,
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.opened.tool,
        "afoot.server": call.opened.server,
        "afoot.call": call.id,
    }


def _opened_by(notes: CallNotes) -> OpeningRequest | None:
    """The request that opened the call; None if none did."""
    requests = notes.live.caller_requests
    return None if requests is None else requests.opened_by


def _request(notes: CallNotes) -> Attributes:
    call = notes.live.call
    caller = call.opened.caller
    found: dict[str, str | int] = {"afoot.caller": caller}
    with suppress(DecodeError):  # a function's caller may pass no object
        found["afoot.argument_count"] = len(json.decode(call.arguments or b"{}", type=dict[str, Raw]))
    opened_by = _opened_by(notes)
    if opened_by is not None:
        number, version, token = opened_by
        found |= {"jsonrpc.request.id": str(number), "mcp.protocol.version": version}
        found["network.transport"] = "pipe" if caller == STDIO else "tcp"
        if not isinstance(token, UnsetType):
            found["afoot.progress_token"] = str(token)[:TOKEN_CHARS]
    if caller.startswith(SESSION):
        found["mcp.session.id"] = caller.removeprefix(SESSION)
    return found


def _result(call: Call, end: Finished) -> Attributes:
    found: dict[str, str | int | float] = {"afoot.outcome": end.outcome}
    if (approved := call.approved) != "auto":
        found["afoot.approved"] = approved
    if reports := call.readings + call.contents:
        found["afoot.reports"] = reports
    if call.cpu_s:
        found["afoot.cpu_s"] = call.cpu_s
    if error := error_type(end):
        found["error.type"] = error
    if call.attempt > 1:
        found["afoot.attempt"] = call.attempt
    if call.opened.rerun_of:
        found["afoot.rerun_of"] = call.opened.rerun_of
    return found


def _status(error: str, end: Finished | None) -> Status:
    if not error:
        return Status(StatusCode.UNSET)
    failure = end.failure if end is not None else None
    clock = f" ({failure.clock})" if failure is not None and failure.clock else ""
    return Status(StatusCode.ERROR, f"{error}{clock}")


def _context(call: Call, span: str, *, is_remote: bool = False) -> SpanContext:
    given = call.opened.trace
    return SpanContext(
        int(trace.trace_id(call) or call.id[-32:], 16),
        int(span, 16),
        is_remote,
        TraceFlags(int(trace.flags(call), 16)),
        TraceState.from_header([given.state]) if given is not None and given.state else None,
    )


def _event(one: Milestone) -> Event:
    return Event(one.name, {f"afoot.{key}": value for key, value in one.about.items()}, _ns(one.at))


def _ns(at: float) -> int:
    return int(at * 1e9)
