"""The figures of `/metrics`: the same as those of OpenTelemetry, in a format that Prometheus reads."""

from collections.abc import Iterable
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client.parser import text_string_to_metric_families

from afoot.core.facts import Answer, Answered, Asked, Failure, Finished, Question, Started
from afoot.observe.figures import ACTIVE, ADDED, MAX_ERROR_TYPES, OTHER, REFUSED
from afoot.observe.metrics import Metrics
from afoot.observe.prometheus import (
    KeptFigures,
    MetricFamily,
    MetricLine,
    exposition,
    format_number,
    prometheus_name,
)
from tests.observe.sample_calls import Noted, Requests

Sink = Metrics | KeptFigures


def fill(sink: Sink) -> None:
    """Have a sink see two calls that ended and one that lives."""
    for outcome, cpu_s in (("failed", 0.0), ("ok", 0.25)):
        noted = Noted("files")
        sink.opened(noted.notes)
        noted.facts(Started(101.0)).reads((103.0, 1, 9))
        noted.facts(Asked(121.0, Question("q", "k", "form")), Answered(126.0, "q", Answer()))
        failure = Failure("no", "validation") if outcome == "failed" else None
        noted.facts(Finished(130.0, outcome, failure=failure, cpu_s=cpu_s))
        noted.live.caller_requests = Requests(repaired=3)
        noted.notes.late, noted.notes.stalls = 2, 1
        sink.finished(noted.notes)
        sink.ended(noted.notes)
    sink.opened(Noted("files").notes)


def read(families: Iterable[MetricFamily]) -> dict[str, dict[frozenset[tuple[str, str]], float]]:
    """The samples as the parser of Prometheus reads them: by name, then by labels."""
    text = "".join(exposition(one) for one in families)
    found: dict[str, dict[frozenset[tuple[str, str]], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            series = found.setdefault(sample.name, {})
            labels = frozenset(sample.labels.items())
            assert labels not in series, f"{sample.name} {sample.labels} stands twice"
            series[labels] = sample.value
    return found


def as_labels(attributes: Any) -> frozenset[tuple[str, str]]:
    """Attributes as Prometheus has them."""
    return frozenset((name.replace(".", "_"), str(value)) for name, value in attributes.items())


def test_the_figures_are_those_of_opentelemetry() -> None:
    """V3, V8: every instrument, every label and every value, whichever way they are sent."""
    reader = InMemoryMetricReader()
    refused = {"local": 3, "stdio": 1}
    metrics = Metrics(MeterProvider([reader], shutdown_on_exit=False).get_meter("test"), refused)
    kept = KeptFigures(refused)
    fill(metrics)
    fill(kept)
    data = reader.get_metrics_data()
    assert data is not None
    sent = [one for group in data.resource_metrics for scope in group.scope_metrics for one in scope.metrics]
    assert {one.name for one in sent} == {one.name for one in (*ADDED, ACTIVE, REFUSED)}
    told = read(kept.families())
    names = {one.name: prometheus_name(one) for one in (*ADDED, ACTIVE, REFUSED)}
    compared = 0
    for metric in sent:
        name = names[metric.name]
        points: list[Any] = list(metric.data.data_points)
        for point in points:
            labels = as_labels(point.attributes)
            if hasattr(point, "bucket_counts"):
                assert told[f"{name}_count"][labels] == point.count
                assert told[f"{name}_sum"][labels] == point.sum
                total = 0
                for bound, count in zip(
                    (*point.explicit_bounds, float("inf")), point.bucket_counts, strict=True
                ):
                    total += count
                    assert told[f"{name}_bucket"][labels | {("le", format_number(bound))}] == total
            else:
                assert told[name][labels] == point.value
            compared += 1
    assert compared == sum(len(one) for name, one in told.items() if not name.endswith(("_bucket", "_sum")))


def test_names_and_units_follow_the_rules_for_prometheus() -> None:
    """V8: underscores, seconds and totals, as a collector would name the same figures."""
    names = [prometheus_name(one) for one in ADDED]
    assert names[0] == "mcp_server_operation_duration_seconds"
    assert "afoot_reports_total" in names
    assert prometheus_name(ACTIVE) == "afoot_calls_active"


def test_a_hostile_name_of_a_tool_breaks_no_line() -> None:
    """V8: quotes, backslashes and ends of lines are escaped, and come back as they were."""
    name = 'a"b\\c\nd{e="f"} 1'
    family = MetricFamily("x_total", "counter", "A\nb\\", [MetricLine("", {"gen_ai.tool.name": name}, 2)])
    assert read([family]) == {"x_total": {frozenset({("gen_ai_tool_name", name)}): 2.0}}


def test_a_value_that_is_a_bound_is_below_it() -> None:
    """V8: a bucket holds the values up to its bound, as Prometheus has it."""
    kept, noted = KeptFigures(), Noted()
    noted.facts(Started(100.0), Finished(100.5, "ok"))
    kept.ended(noted.notes)
    buckets = read(kept.families())["mcp_server_operation_duration_seconds_bucket"]
    told = {dict(labels)["le"]: count for labels, count in buckets.items()}
    assert (told["0.2"], told["0.5"], told["+Inf"]) == (0, 1, 1)


def test_kinds_of_errors_without_end_are_counted_together() -> None:
    """V8: a tool that makes up a category for every error makes no series for each."""
    kept = KeptFigures()
    for number in range(MAX_ERROR_TYPES + 20):
        noted = Noted()
        noted.facts(Started(101.0), Finished(102.0, "failed", failure=Failure("no", f"kind-{number}")))
        kept.ended(noted.notes)
    counts = read(kept.families())["mcp_server_operation_duration_seconds_count"]
    assert len(counts) == MAX_ERROR_TYPES + 1
    assert [value for labels, value in counts.items() if ("error_type", OTHER) in labels] == [20]


def test_figures_that_have_no_value_have_no_lines() -> None:
    """V8: a family without samples would be a head without a body."""
    assert "".join(exposition(one) for one in KeptFigures().families()) == ""
