"""A call through two gateways to a server of the official SDK is one trace at a real receiver."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from afoot.core.facts import Opened
from tests.e2e import history
from tests.e2e.gateway import until
from tests.e2e.gateway_with_servers import Front, fronting, python
from tests.e2e.raw_client import Http, call, last
from tests.observe.otlp_receiver import Received, Receiver, receiving

pytestmark = pytest.mark.timeout(150)
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"
META = {
    "traceparent": f"00-{TRACE}-{PARENT}-01",
    "tracestate": "shop=1",
    "baggage": "customer=alice",
}
ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spans are sent at once, and nothing of the environment that the tests run in counts."""
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
    for name in ("OTEL_SDK_DISABLED", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_SERVICE_NAME"):
        monkeypatch.delenv(name, raising=False)


@contextmanager
def hops(folder: Path, receiver: Receiver, outer: dict[str, str], inner: dict[str, str]) -> Iterator[Front]:
    """A gateway in front of a gateway in front of a server that traces; `outer`, `inner`: their [otel]."""
    scales = {"scales": python("tests.e2e.servers.traced_server", SCALES_OTLP=receiver.url)}
    with fronting(folder / "inner", scales, {"otel": inner}, ()) as behind:
        until(lambda: offers(behind, "weigh"), "the server's tool", 40)
        with fronting(folder / "outer", {"inner": {"url": behind.url}}, {"otel": outer}, ()) as front:
            until(lambda: offers(front, "weigh"), "the gateway's tool", 40)
            yield front


def offers(front: Front, tool: str) -> bool:
    """Whether a gateway has this tool by now."""
    ran = subprocess.run(
        [sys.executable, "-m", "afoot", "tools", "--json"],
        env=front.environment, capture_output=True, timeout=20, check=False,
    )  # fmt: skip
    return f'"{tool}"' in ran.stdout.decode()


def weigh(front: Front) -> str:
    """Call the tool with a trace, and give what it said."""
    with Http(front.url) as http:
        answer = last(http.post(call("weigh", {"grams": 5}, **META)))
    return str(answer["result"]["content"][0]["text"])


def one(spans: list[Received], service: str, kind: int) -> Received:
    """The only span of this kind, which a call to the tool made."""
    found = [
        span
        for span in spans
        if (span.service, span.kind) == (service, kind) and span.name == "tools/call weigh"
    ]
    assert len(found) == 1, found
    return found[0]


def test_a_call_through_two_gateways_to_a_server_is_one_trace(tmp_path: Path) -> None:
    """V3: client, gateway, gateway, server and what that does, each below the one before; and metrics."""
    with receiving() as receiver:
        otel = {"endpoint": receiver.url}
        with hops(
            tmp_path, receiver, {**otel, "service_name": "outer"}, {**otel, "service_name": "inner"}
        ) as front:
            assert weigh(front) == "5 g, customer=alice"
            until(lambda: len([span for span in receiver.spans if span.trace == TRACE]) >= 6, "six spans", 20)
            shown = seen(front, front.newest("weigh"))
    spans = [span for span in receiver.spans if span.trace == TRACE]
    chain = [one(spans, "outer", 2), one(spans, "outer", 3), one(spans, "inner", 2), one(spans, "inner", 3)]
    chain.append(one(spans, "scales", 2))
    chain += [span for span in spans if span.name == "put on the scales"]
    assert [span.parent for span in chain] == [PARENT, *(span.id for span in chain[:-1])]
    assert chain[0].events == ["started", "finished"]
    assert chain[2].attributes["mcp.protocol.version"] == "2025-11-25"  # the inner one speaks both
    for service in ("outer", "inner"):
        assert {"mcp.server.operation.duration", "mcp.client.operation.duration"} <= set(
            receiver.metrics[service]
        )
    assert shown == META["traceparent"]


def seen(front: Front, call_id: str) -> Any:
    """The trace of a call as its history tells it."""
    ran = subprocess.run(
        [sys.executable, "-m", "afoot", "log", call_id, "--json"],
        env=front.environment, capture_output=True, timeout=20, check=True,
    )  # fmt: skip
    return json.loads(ran.stdout.splitlines()[0])["fact"]["trace"]["parent"]


def test_a_gateway_without_telemetry_is_no_gap_in_a_trace(tmp_path: Path) -> None:
    """V3: what its caller sent goes on unchanged, and stands in the history."""
    with receiving() as receiver, hops(tmp_path, receiver, {}, {}) as front:
        assert weigh(front) == "5 g, customer=alice"
        until(lambda: [span for span in receiver.spans if span.parent == PARENT], "the server's span", 20)
        (opened,) = history.of_type(Opened, front.facts(front.newest("weigh")))
    assert {span.service for span in receiver.spans} == {"scales"}
    (root,) = [span for span in receiver.spans if span.parent == PARENT]
    assert (root.trace, root.name) == (TRACE, "tools/call weigh")
    assert opened.trace is not None
    assert (opened.trace.parent, opened.trace.baggage) == (META["traceparent"], META["baggage"])


def test_off_means_that_nothing_of_it_is_loaded_or_crossed(tmp_path: Path) -> None:
    """V3: no cost where nobody wants it: no SDK, and no function on the path of a call."""
    ran = subprocess.run(
        [sys.executable, "-m", "bench.figures.probe", "own", str(tmp_path)],
        capture_output=True, timeout=50, check=False, cwd=ROOT,
    )  # fmt: skip
    assert ran.stdout, ran.stderr.decode()
    found = json.loads(ran.stdout)
    crossed = found["crossed"]
    assert crossed and not [name for name in crossed if "observe/" in name or "core/trace" in name]
    assert "afoot" in found["packages"] and "opentelemetry" not in found["packages"]


def test_a_receiver_that_is_dead_is_nobodys_bad_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """V3: calls are answered, one line is in the log, and the gateway ends when it is told to."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")  # after which a try has failed
    with receiving() as gone:
        pass
    otel = {"endpoint": gone.url}
    with fronting(tmp_path / "gateway", {}, {"otel": otel}) as front:
        for number in range(3):
            with Http(front.url) as http:
                answer = last(http.post(call("add", {"a": 1, "b": 2}, id=number)))
            assert answer["result"]["structuredContent"] == {"sum": 3}, answer
        until(lambda: "telemetry does not arrive" in front.said(), "the line", 30)
    assert front.said().count("telemetry does not arrive") <= 2  # one for each signal
    assert "Traceback" not in front.said()
