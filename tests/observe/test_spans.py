"""Spans of calls by the conventions for MCP: names, kinds, parents, attributes, and nothing that was said."""

import pytest
from msgspec import UNSET, Raw
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanKind, StatusCode, format_span_id, format_trace_id

from afoot.core import trace
from afoot.core.facts import Failure, Finished, Result, Started, Trace
from afoot.observe.spans import Spans
from tests.observe.sample_calls import ID, Noted, Requests

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
SECRET = "hunter2"


def exported(noted: Noted) -> list[ReadableSpan]:
    """The spans of a call as an exporter gets them."""
    kept = InMemorySpanExporter()
    processor = SimpleSpanProcessor(kept)
    for span in Spans(Resource({"service.name": "test"}), InstrumentationScope("test")).of(noted.notes):
        processor.on_end(span)
    return list(kept.get_finished_spans())


def test_a_call_is_a_server_span_below_its_callers() -> None:
    """V3: the name, the kind and the attributes that the conventions want; the parent from `_meta`."""
    noted = Noted(trace=Trace(PARENT, "a=1")).facts(Started(101.0), Finished(103.5, "ok"))
    noted.live.caller_requests = Requests((7, "2026-07-28", UNSET))
    (span,) = exported(noted)
    assert (span.name, span.kind, span.status.status_code) == (
        "tools/call export",
        SpanKind.SERVER,
        StatusCode.UNSET,
    )
    assert (span.start_time, span.end_time) == (100_000_000_000, 103_500_000_000)
    assert span.context is not None and span.parent is not None and span.attributes is not None
    assert format_trace_id(span.context.trace_id) == PARENT[3:35]
    assert format_span_id(span.parent.span_id) == PARENT[36:52]
    assert span.parent.is_remote and span.context.trace_state.to_header() == "a=1"
    wanted = {
        "mcp.method.name": "tools/call",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "export",
        "mcp.protocol.version": "2026-07-28",
        "jsonrpc.request.id": "7",
        "afoot.server": "local",
        "afoot.call": ID,
        "afoot.outcome": "ok",
    }
    assert {key: span.attributes.get(key) for key in wanted} == wanted
    assert "error.type" not in span.attributes and "mcp.session.id" not in span.attributes


def test_a_span_says_how_the_request_came_and_what_it_cost() -> None:
    """V3: transport, progress token, number of arguments and processor time; what is unknown is left out."""
    arguments = Raw(b'{"a":{"b":1},"password":"hunter2"}')
    noted = Noted(caller="stdio", arguments=arguments)
    noted.facts(Started(101.0), Finished(103.5, "ok", cpu_s=1.5))
    noted.live.caller_requests = Requests((7, "2025-11-25", "tok-1"))
    (span,) = exported(noted)
    wanted = {
        "network.transport": "pipe",
        "afoot.progress_token": "tok-1",
        "afoot.argument_count": 2,
        "afoot.cpu_s": 1.5,
    }
    assert span.attributes is not None
    assert {key: span.attributes.get(key) for key in wanted} == wanted
    plain = Noted().facts(Started(101.0), Finished(103.5, "ok"))
    plain.live.caller_requests = Requests((7, "2026-07-28", UNSET))
    (span,) = exported(plain)
    assert span.attributes is not None and span.attributes["network.transport"] == "tcp"
    assert span.attributes["afoot.argument_count"] == 0
    assert not {"afoot.progress_token", "afoot.cpu_s"} & set(span.attributes)


def test_a_call_to_another_server_has_a_client_span_for_each_attempt() -> None:
    """V3: below the call's own, under the name that the server knows, with the id that it was sent."""
    noted = Noted("files", trace.NEW_TRACE).facts(
        Started(101.0), Started(105.0, 2, why="it died"), Finished(107.0, "ok")
    )
    own, first, second = exported(noted)
    assert own.parent is None and own.context is not None
    for number, span in ((1, first), (2, second)):
        assert (span.name, span.kind) == ("tools/call inner_export", SpanKind.CLIENT)
        assert span.context is not None and span.parent is not None
        assert span.parent.span_id == own.context.span_id
        sent = trace.outgoing_trace(noted.call, number, spans=True)["traceparent"]
        assert sent.split("-")[1:3] == [
            format_trace_id(span.context.trace_id),
            format_span_id(span.context.span_id),
        ]
    assert (first.end_time, second.start_time) == (105_000_000_000, 105_000_000_000)
    assert first.status.status_code is StatusCode.ERROR
    assert second.status.status_code is StatusCode.UNSET


def test_a_call_below_another_is_no_server_span() -> None:
    """V3: a tool that calls a tool is work inside, below its own span."""
    noted = Noted(trace=Trace(PARENT), parent="above").facts(Started(101.0), Finished(102.0, "ok"))
    (span,) = exported(noted)
    assert span.kind is SpanKind.INTERNAL
    assert span.parent is not None and not span.parent.is_remote


@pytest.mark.parametrize(
    ("end", "error"),
    [
        (Finished(102.0, "failed", Result(Raw(b"[]"), is_error=True)), "tool_error"),
        (Finished(102.0, "failed", failure=Failure("no", "validation")), "validation"),
        (Finished(102.0, "timed_out", failure=Failure("no", "timeout", clock="idle")), "timed_out"),
        (Finished(102.0, "cancelled"), "cancelled"),
        (Finished(102.0, "refused"), "refused"),
        (Finished(102.0, "uncertain"), "uncertain"),
    ],
)
def test_an_end_that_is_no_success_is_an_error_of_its_kind(end: Finished, error: str) -> None:
    """V3: of few kinds, so that they can be counted."""
    (span,) = exported(Noted().facts(Started(101.0), end))
    assert span.attributes is not None
    assert (span.status.status_code, span.attributes["error.type"]) == (StatusCode.ERROR, error)


def test_nothing_that_was_said_is_in_a_span() -> None:
    """V3, S4: arguments, results, messages and the words of failures stay here."""
    noted = Noted(digest=SECRET).facts(Started(101.0, why=SECRET))
    noted.reads((102.0, 1, 2))
    noted.facts(Finished(103.0, "failed", Result(Raw(SECRET.encode()), is_error=True), Failure(SECRET)))
    assert SECRET not in "".join(span.to_json() for span in exported(noted))


def test_a_trace_that_its_caller_does_not_want_is_not_exported() -> None:
    """V3: whoever begins a trace decides whether it is kept."""
    noted = Noted(trace=Trace(PARENT[:-2] + "00")).facts(Started(101.0), Finished(102.0, "ok"))
    assert exported(noted) == []


def test_a_session_is_named_without_its_key() -> None:
    """V3, S4: the name by which its calls are known here."""
    noted = Noted().facts(Finished(102.0, "ok"))
    noted.call.opened = type(noted.call.opened)(100.0, "export", "local", "session:abc", Raw(b"{}"))
    (span,) = exported(noted)
    assert span.attributes is not None and span.attributes["mcp.session.id"] == "abc"
