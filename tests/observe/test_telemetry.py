"""Telemetry on and off: by the settings, by the standard variables, with and without its extra."""

import asyncio
import logging
import socket
import sys
import threading

import pytest

import afoot
from afoot.config.settings import OtelSettings, Settings
from afoot.core.facts import Trace
from afoot.errors import CallerError
from afoot.gateway import Gateway
from afoot.observe.telemetry import DEFAULT, telemetry_targets
from afoot.serve.api.views import call_view
from tests.observe.otlp_receiver import Receiver, receiving

BASE = "http://collector:4318"
TRACES, METRICS = f"{BASE}/v1/traces", f"{BASE}/v1/metrics"
NOBODY = "http://127.0.0.1:9"  # nobody listens there


@afoot.tool
async def three(ctx: afoot.Context) -> str:
    """Report three times."""
    for number in range(3):
        ctx.report(number + 1, 3)
        await asyncio.sleep(0)
    return "done"


@afoot.tool
async def twice(ctx: afoot.Context) -> str:
    """Call another tool."""
    await ctx.call("three")
    return "done"


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the environment that the tests run in counts."""
    for name in (
        "OTEL_SDK_DISABLED",
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "OTEL_EXPORTER_OTLP_PROTOCOL",
        "OTEL_SERVICE_NAME",
        "OTEL_RESOURCE_ATTRIBUTES",
    ):
        monkeypatch.delenv(name, raising=False)


def run(settings: OtelSettings, *tools: str) -> list[str]:
    """Call tools, one after the other, and give how they ended."""

    async def main() -> list[str]:
        async with Gateway(three, twice, settings=Settings(store=":memory:", otel=settings)) as gateway:
            ended = [await gateway.call(name) for name in tools]
        return [call.end.outcome for call in ended if call.end is not None]

    return asyncio.run(main())


def test_telemetry_is_off_unless_somebody_says_where_it_goes() -> None:
    """V3: nothing is sent anywhere by itself."""
    assert telemetry_targets(OtelSettings(), {}) == {}
    assert telemetry_targets(OtelSettings(service_name="x"), {"OTEL_SERVICE_NAME": "y"}) == {}


def test_the_settings_say_where_it_goes() -> None:
    """V3: an address, or only that it is wanted."""
    assert telemetry_targets(OtelSettings(endpoint=f"{BASE}/"), {}) == {"traces": TRACES, "metrics": METRICS}
    assert telemetry_targets(OtelSettings(enabled=True), {})["traces"] == f"{DEFAULT}/v1/traces"


def test_the_standard_variables_say_where_it_goes() -> None:
    """V3: as for every other program: one address for all, one for each signal, or none."""
    assert telemetry_targets(OtelSettings(), {"OTEL_EXPORTER_OTLP_ENDPOINT": BASE}) == {
        "traces": TRACES,
        "metrics": METRICS,
    }
    alone = {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://other/traces"}
    assert telemetry_targets(OtelSettings(), alone) == {"traces": "http://other/traces"}
    without = {"OTEL_EXPORTER_OTLP_ENDPOINT": BASE, "OTEL_METRICS_EXPORTER": "none"}
    assert telemetry_targets(OtelSettings(), without) == {"traces": TRACES}


def test_what_is_set_for_afoot_goes_over_what_is_set_for_everybody() -> None:
    """V3: but whoever disables the SDK means it."""
    others = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://other",
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://other/traces",
    }
    assert telemetry_targets(OtelSettings(endpoint=BASE), others)["traces"] == TRACES
    assert telemetry_targets(OtelSettings(enabled=False), others) == {}
    assert telemetry_targets(OtelSettings(endpoint=BASE), {"OTEL_SDK_DISABLED": "true"}) == {}


def test_an_address_that_is_none_is_told_with_what_it_should_be() -> None:
    """V3: before anything is served."""
    with pytest.raises(CallerError, match="collector:4318.*must begin with http"):
        run(OtelSettings(endpoint="collector:4318"))


def test_what_the_environment_says_wrongly_stops_nobody(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """V3: it may be meant for another program; it is said once that there is no telemetry."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4317")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    assert run(OtelSettings(), "three") == ["ok"]
    (line,) = [one for one in caplog.records if one.name == "afoot.telemetry"]
    assert "http/protobuf only, not as grpc" in line.getMessage()


def test_a_variable_that_the_sdk_cannot_read_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """V3: in words, not as a traceback."""
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "0")
    with pytest.raises(CallerError, match="telemetry cannot be set up: interval value 0"):
        run(OtelSettings(endpoint=BASE))


def test_without_the_extra_the_error_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """V3: asked for in the settings it is an error; by the environment alone it is one line in the log."""
    monkeypatch.setitem(sys.modules, "afoot.observe.exporter", None)
    with pytest.raises(CallerError, match=r"pip install 'afoot\[otel\]'"):
        run(OtelSettings(endpoint=BASE))
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", BASE)
    assert run(OtelSettings(), "three") == ["ok"]
    assert [one.getMessage() for one in caplog.records if "afoot[otel]" in one.getMessage()] != []


def test_calls_arrive_as_spans_and_metrics_with_the_headers_that_were_set() -> None:
    """V3: what ended is there once the gateway has closed."""
    with receiving() as receiver:
        settings = OtelSettings(endpoint=receiver.url, headers={"X-Key": "k"}, service_name="mine")
        assert run(settings, "three", "three") == ["ok", "ok"]
    assert [span.name for span in receiver.of("mine")] == ["tools/call three"] * 2
    assert receiver.spans[0].trace != receiver.spans[1].trace
    assert {"mcp.server.operation.duration", "afoot.call.first_report"} <= set(receiver.metrics["mine"])
    assert all(headers["x-key"] == "k" for headers in receiver.headers)


def test_a_call_shows_the_trace_that_it_is_part_of() -> None:
    """V3, V1: the id by which its spans are found; none where there are no spans and the caller sent none."""

    async def main(settings: OtelSettings, given: Trace | None) -> object:
        async with Gateway(three, settings=Settings(store=":memory:", otel=settings)) as gateway:
            return call_view(await gateway.call("three", trace=given), 0.0).trace

    sent = Trace("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
    with receiving() as receiver:
        on = OtelSettings(endpoint=receiver.url)
        assert asyncio.run(main(on, sent)) == "4bf92f3577b34da6a3ce929d0e0e4736"
        begun = asyncio.run(main(on, None))
    assert [span.trace for span in receiver.spans] == ["4bf92f3577b34da6a3ce929d0e0e4736", begun]
    assert asyncio.run(main(OtelSettings(), None)) is None


def test_a_call_below_another_is_a_span_below_its_span() -> None:
    """V3, P8: one trace."""
    with receiving() as receiver:
        assert run(OtelSettings(endpoint=receiver.url), "twice") == ["ok"]
    above, below = sorted(receiver.of("afoot"), key=lambda span: span.name, reverse=True)
    assert (above.name, below.name) == ("tools/call twice", "tools/call three")
    assert (below.trace, below.parent, above.parent) == (above.trace, above.id, "")
    assert (above.kind, below.kind) == (2, 1)


def test_a_receiver_that_is_away_costs_one_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """V3: calls go on, and closing does not wait for it."""
    with caplog.at_level(logging.WARNING):
        assert run(OtelSettings(endpoint=NOBODY), "three", "three") == ["ok", "ok"]
    lines = [one.getMessage() for one in caplog.records if "elemetry" in one.name]
    # So soon after the first try nobody knows yet; on a slow machine somebody may.
    assert 1 <= len(lines) <= 3 and all("telemetry" in line for line in lines)
    assert "telemetry could not all be sent within 2 s" in lines or "does not arrive" in lines[0]


def test_a_receiver_that_is_away_leaves_no_thread_behind() -> None:
    """V3: the gateway is closed, so nobody tries any more."""
    before = threading.enumerate()
    run(OtelSettings(endpoint=NOBODY), "three")
    for thread in threading.enumerate():
        if thread not in before:
            thread.join(5)
            assert not thread.is_alive(), thread.name


def test_a_receiver_that_answers_nobody_keeps_no_gateway_from_closing() -> None:
    """V3: a moment is what it gets, not the time that a request may take."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"

        async def main() -> None:
            async with asyncio.timeout(8):  # the exporter itself would try for ten
                async with Gateway(
                    three, settings=Settings(store=":memory:", otel=OtelSettings(endpoint=endpoint))
                ) as one:
                    await one.call("three")

        asyncio.run(main())


def test_a_receiver_that_comes_back_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    """V3: whoever reads the log knows where there is a gap."""
    from afoot.observe.exporter import DeliveryLog as Watched

    caplog.set_level(logging.WARNING)
    watched = Watched("http://there")
    for did in (True, False, False, True, True):
        watched.record_delivery(did)
    assert [one.getMessage() for one in caplog.records] == [
        "telemetry does not arrive at http://there; calls go on without",
        "telemetry arrives again at http://there",
    ]


def test_a_request_that_is_refused_is_no_bad_day(caplog: pytest.LogCaptureFixture) -> None:
    """V3: the receiver says no, the caller does not hear of it."""
    with receiving() as receiver:
        receiver.status = 401
        assert run(OtelSettings(endpoint=receiver.url), "three") == ["ok"]
    assert isinstance(receiver, Receiver) and receiver.headers
    lines = [one.getMessage() for one in caplog.records]
    assert f"telemetry does not arrive at {receiver.url}/v1/traces; calls go on without" in lines
