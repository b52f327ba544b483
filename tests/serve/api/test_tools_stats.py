"""How a tool's runs went: what its page in the console shows, from the history."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afoot.serve.api.tools import STATS_RUNS, histogram
from tests.serve.api_client import Api

DURATIONS = st.lists(st.floats(0, 1e5), max_size=60).map(sorted)


@given(DURATIONS)
def test_every_run_stands_in_exactly_one_column(took: list[float]) -> None:
    """V1: columns follow each other without a gap, and none of the runs is left out."""
    columns = histogram(took)
    assert sum(count for _, _, count in columns) == len(took)
    assert all(start < end for start, end, _ in columns)
    assert [end for _, end, _ in columns[:-1]] == [start for start, _, _ in columns[1:]]
    assert len(columns) <= 40


@pytest.mark.parametrize(
    ("took", "columns"),
    [
        ([], []),
        ([0.0, 0.0004], [(0.0, 0.001, 2)]),
        ([0.3, 0.3, 0.3], [(0.3, 0.35, 3)]),
        ([2.0, 2.9, 3.1, 4.0], [(2.0, 2.2, 1), (2.8, 3.0, 1), (3.0, 3.2, 1), (4.0, 4.2, 1)]),
        ([0.15, 0.3, 3.0, 40.0], [(0.1, 0.2, 1), (0.2, 0.5, 1), (2.0, 5.0, 1), (20.0, 50.0, 1)]),
    ],
)
def test_columns_begin_at_round_numbers(took: list[float], columns: list[tuple[float, float, int]]) -> None:
    """V1: of one width where runs are alike, ever wider where they are not."""
    assert [one for one in histogram(took) if one[2]] == columns


def test_a_tool_tells_how_its_runs_went(api: Api) -> None:
    """V1, P9: how many, how many failed, how long the good ones took, and the last of them."""
    calls = [api.start("nap", sleep_s=0.05 * number) for number in (1, 2, 3)]
    for call in [*calls, api.start("nap", sleep_s="no number")]:
        api.ended(call)
    stats = api.get("/api/tools/nap").body["stats"]
    assert (stats["runs"], stats["failures"]) == (4, 1)
    assert 0.1 <= stats["p50_s"] <= stats["p95_s"] < 2
    assert sum(count for _, _, count in stats["histogram"]) == 3
    last = stats["last"]
    assert {one["id"] for one in last} > set(calls) and len(last) == 4
    assert [one["opened"] for one in last] == sorted((one["opened"] for one in last), reverse=True)


def test_a_call_that_lives_is_among_the_last_and_no_run_yet(api: Api) -> None:
    """V1: it is shown with its newest values, and counted when it has ended."""
    before = api.get("/api/tools/count_up").body["stats"]
    call = api.start("count_up", n=1000, step_s=0.02)
    stats = api.get("/api/tools/count_up").body["stats"]
    assert stats["last"][0]["id"] == call and stats["last"][0]["state"] in ("queued", "running")
    assert stats["runs"] == before["runs"]
    api.post(f"/api/calls/{call}/cancel", {})
    api.ended(call)
    stats = api.get("/api/tools/count_up").body["stats"]
    assert stats["runs"] == before["runs"] + 1 and stats["failures"] == before["failures"]


def test_the_list_says_how_the_runs_of_each_tool_went_if_it_is_asked(api: Api) -> None:
    """V1: the same numbers as on the page of the tool, and when the newest run was opened."""
    calls = [api.start("block", sleep_s=0.05), api.start("block", sleep_s="no number")]
    for call in calls:
        api.ended(call)
    listed = {one["name"]: one["recent"] for one in api.get("/api/tools?recent=true").body["tools"]}
    stats = api.get("/api/tools/block").body["stats"]
    assert listed["block"].pop("last") == stats["last"][0]["opened"]
    assert listed["block"] == {key: stats[key] for key in ("runs", "failures", "p50_s", "p95_s")}
    assert listed["leave"] == {"runs": 0, "failures": 0, "p50_s": None, "p95_s": None, "last": None}
    assert all("recent" not in one for one in api.get("/api/tools?recent=false").body["tools"])
    assert api.get("/api/tools?recent=often").status == 422


def test_a_tool_that_never_ran_has_nothing_to_tell(api: Api) -> None:
    """V1: no number where there is none; the list of tools does without."""
    stats = api.get("/api/tools/leave").body["stats"]
    assert (stats["runs"], stats["p50_s"], stats["p95_s"], stats["histogram"]) == (0, None, None, [])
    assert all("stats" not in tool for tool in api.get("/api/tools").body["tools"])
    assert api.get("/api/tools/nobody").status == 404


def test_only_the_newest_runs_count(api: Api) -> None:
    """V1: what was long ago says little about now."""

    def start(number: int) -> str:
        return api.start("add", a=number, b=1)

    with ThreadPoolExecutor(8) as several:
        calls = list(several.map(start, range(STATS_RUNS + 5)))
    for call in calls:
        api.ended(call)
    stats = api.get("/api/tools/add").body["stats"]
    assert (stats["runs"], stats["failures"], len(stats["last"])) == (STATS_RUNS, 0, 10)
