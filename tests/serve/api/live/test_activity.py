"""The figures of the last hour: from calls that are given, and from a gateway that ran some."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afoot.core.ports import CallOutline
from afoot.serve.api.live.activity import STEPS, summarize_activity
from tests.serve.api_client import Api

SPANS = st.lists(st.tuples(st.floats(0, 3600), st.floats(0, 600)), max_size=30)


def row(name: str, opened: float, took: float | None, outcome: str = "ok") -> CallOutline:
    """A call that started as it was opened; without `took` it still runs."""
    finished = None if took is None else opened + took
    ended = None if took is None else outcome
    return CallOutline(name, f"tool_{name}", "s", "c", opened, opened, finished, ended, "", "", took, False)


def test_the_last_hour_is_counted_and_its_slowest_call_named() -> None:
    """V1, V6: calls, failures, p95 of the successful ones, and the one that took longest."""
    rows = [row("a", 10, 5), row("b", 20, 90), row("c", 30, 300, "timed_out"), row("d", 3010, None)]
    found = summarize_activity(rows, 0, 3600)
    assert (found.calls, found.failed, found.p95_s) == (4, 1, pytest.approx(85.75))
    assert found.slowest is not None
    assert (found.slowest.id, found.slowest.tool, found.slowest.took_s) == ("b", "tool_b", 90)
    assert [one.running for one in found.steps][-6:] == [0, 1, 1, 1, 1, 1]
    assert found.steps[2].failed == 1 and found.steps[0].running == 1


def test_a_call_from_before_counts_only_as_running() -> None:
    """V6: the hour has the calls that were opened in it."""
    found = summarize_activity([row("a", 50, None)], 100, 3700)
    assert (found.calls, {one.running for one in found.steps}) == (0, {1})


@given(SPANS)
def test_the_steps_add_up_to_the_whole(spans: list[tuple[float, float]]) -> None:
    """V6: no call is in two steps, and none is left out."""
    rows = [row(str(number), at, took, "failed") for number, (at, took) in enumerate(spans)]
    found = summarize_activity(rows, 0, 3600)
    assert len(found.steps) == STEPS
    assert sum(one.opened for one in found.steps) == found.calls == len(rows)
    assert sum(one.failed for one in found.steps) == found.failed
    ends = [at + took for at, took in spans]
    for step in found.steps[:-1]:
        at_once = sum(at <= step.at < end for (at, _), end in zip(spans, ends, strict=True))
        assert step.running == at_once


def test_a_gateway_tells_its_last_hour(api: Api) -> None:
    """V6: ended and live calls, with the same durations as the page of the tool."""
    before: dict[str, Any] = api.get("/api/activity").body
    api.ended(api.start("nap", sleep_s=0.1))
    api.ended(api.start("nap", sleep_s="no number"))
    call = api.start("count_up", n=1000, step_s=0.02)
    after = api.get("/api/activity").body
    api.post(f"/api/calls/{call}/cancel", {})
    assert after["calls"] >= before["calls"] + 2
    assert after["failed"] == before["failed"] + 1
    assert after["steps"][-1]["running"] >= 1
    assert after["slowest"]["took_s"] >= after["p95_s"] > 0
    assert after["now"] - after["since"] == pytest.approx(3600)
    assert after["slots"] is None, "its own tools have no limit"
    api.ended(call)
    found, whole = api.get("/api/activity").body, api.get("/api/history").body
    assert (found["calls"], found["failed"]) == (whole["calls"], whole["failed"]), "as the history has them"
