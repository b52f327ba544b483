"""Metrics of calls: what is measured, by what, and that there are never too many series."""

from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from afoot.core.facts import Answer, Answered, Asked, Failure, Finished, Question, Started
from afoot.observe.figures import MAX_TOOLS, OTHER
from afoot.observe.metrics import Metrics
from tests.observe.sample_calls import Noted, Requests


class Kept:
    """Metrics, and a reader that keeps them here."""

    def __init__(self, **refused: int) -> None:
        self._reader = InMemoryMetricReader()
        meter = MeterProvider([self._reader], shutdown_on_exit=False).get_meter("test")
        self.metrics = Metrics(meter, refused)

    def read(self) -> dict[str, list[Any]]:
        """The points of every metric, by its name."""
        data = self._reader.get_metrics_data()
        assert data is not None
        scopes = [scope for one in data.resource_metrics for scope in one.scope_metrics]
        return {metric.name: list(metric.data.data_points) for scope in scopes for metric in scope.metrics}


def busy() -> Kept:
    """What is kept of a call that had something of everything."""
    kept, noted = Kept(), Noted("files")
    kept.metrics.opened(noted.notes)
    noted.facts(Started(101.0)).reads((103.0, 1, 9))
    noted.live.heard = 119.0
    noted.notes.look(120.0)
    noted.facts(Asked(121.0, Question("q", "k", "form")), Answered(126.0, "q", Answer()))
    noted.facts(Finished(130.0, "failed", failure=Failure("no", "validation")))
    noted.live.caller_requests = Requests(repaired=3)
    noted.notes.late = 2
    kept.metrics.finished(noted.notes)
    kept.metrics.ended(noted.notes)
    return kept


def test_a_call_adds_to_every_metric_that_it_has_something_for() -> None:
    """V3: duration, first report, longest gap, stalls, reports, repaired, dropped, and what people took."""
    found = busy().read()
    sums = {name: points[0].sum for name, points in found.items() if hasattr(points[0], "sum")}
    assert sums == {
        "mcp.server.operation.duration": 30.0,
        "mcp.client.operation.duration": 29.0,
        "afoot.call.first_report": 2.0,
        "afoot.call.longest_gap": 4.0,
        "afoot.question.wait": 5.0,
    }
    values = {name: points[0].value for name, points in found.items() if hasattr(points[0], "value")}
    assert values == {
        "afoot.call.stalls": 1,
        "afoot.reports": 1,
        "afoot.reports.repaired": 3,
        "afoot.reports.dropped": 2,
        "afoot.calls.active": 0,
    }
    assert dict(found["mcp.server.operation.duration"][0].attributes) == {
        "mcp.method.name": "tools/call",
        "gen_ai.tool.name": "export",
        "afoot.server": "files",
        "afoot.outcome": "failed",
        "error.type": "validation",
    }


def test_calls_over_a_quota_are_counted_though_there_is_no_call() -> None:
    """G2, V3: nothing else tells of them, nor of whose they are."""
    points = Kept(local=3, stdio=1).read()["afoot.quota.refused"]
    told = {point.attributes["afoot.caller"]: point.value for point in points}
    assert told == {"local": 3, "stdio": 1}


def test_the_processor_time_of_an_isolated_call_is_told() -> None:
    """G1, V3: so that a backend can show what costs."""
    kept, noted = Kept(), Noted()
    noted.facts(Started(101.0), Finished(102.0, "ok", cpu_s=0.75))
    kept.metrics.ended(noted.notes)
    [point] = kept.read()["afoot.call.cpu"]
    assert point.sum == 0.75


def test_a_silent_call_adds_its_duration_alone() -> None:
    """V3: what never reports has no first report and no gap."""
    kept, noted = Kept(), Noted()
    noted.facts(Started(101.0), Finished(102.0, "ok"))
    kept.metrics.ended(noted.notes)
    assert set(kept.read()) == {"mcp.server.operation.duration"}


def test_tools_without_end_are_counted_together_from_some_number_on() -> None:
    """V3: a page that registers a tool a second does not break the backend."""
    kept = Kept()
    for number in range(MAX_TOOLS + 50):
        noted = Noted()
        noted.call.opened = type(noted.call.opened)(
            100.0, f"tool{number}", "browser", "local", noted.call.arguments
        )
        kept.metrics.opened(noted.notes)
        noted.facts(Finished(101.0, "ok"))
        kept.metrics.finished(noted.notes)
        kept.metrics.ended(noted.notes)
    points = kept.read()["mcp.server.operation.duration"]
    rest = [point for point in points if point.attributes["gen_ai.tool.name"] == OTHER]
    assert len(points) == MAX_TOOLS + 1
    assert [point.count for point in rest] == [50]
    assert all(point.value == 0 for point in kept.read()["afoot.calls.active"])
