"""The history of a time in one answer, and the lists and exports with the same filters."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from afoot.core.facts import Answer, Answered, Asked, Fact, Finished, Interrupted, Opened, Question, Started
from afoot.serve.api.history.summary import count_at_once, read_marks
from tests.e2e.gateway import Gateway, serving, until
from tests.serve.api_client import Api

OPENED = Opened(1.0, "export", "tools", "local", Raw(b"{}"))


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway whose history has a tree, a failure and an answered question."""
    folder = tmp_path_factory.mktemp("history")
    with serving(folder, {"drain_s": 0.2}, tools=[Path(__file__).with_name("history_tools.py")]) as started:
        api = Api(started)
        api.ended(api.start("report", pages=3))
        api.ended(api.start("give_up"))
        asking = api.start("ask_colour")
        question = api.asked(asking)
        # Somebody takes longer to answer than clocks stand still by chance.
        until(lambda: api.get("/healthz").body and _age(api, asking) > 0.1, "a moment")
        api.post(f"/api/questions/{question['id']}/answer", {"content": {"colour": "red"}})
        api.ended(asking)
        yield started


def _age(api: Api, call: str) -> float:
    return float(api.call(call)["elapsed_s"])


def listed(api: Api, query: str) -> list[str]:
    """The tools of the calls that a list has."""
    return [one["tool"] for one in api.get(f"/api/calls?state=finished&{query}").body["calls"]]


def test_a_time_is_summed_up_with_every_tool_and_caller(api: Api) -> None:
    """V1, H1: calls, trees, failures, questions, and how long each tool took."""
    found = api.get("/api/history").body
    counts = {name: found[name] for name in ("calls", "roots", "failed", "asked", "slower")}
    assert counts == {"calls": 7, "roots": 3, "failed": 1, "asked": 1, "slower": 0}
    tools = {one["tool"]: one for one in found["tools"]}
    assert (tools["page"]["calls"], tools["page"]["failed"]) == (3, 0)
    assert tools["page"]["p95_s"] >= tools["page"]["p50_s"] >= 0
    assert (tools["give_up"]["failed"], tools["give_up"]["p95_s"]) == (1, None)
    assert found["callers"] == [{"caller": "operator", "calls": 7}]
    assert max(found["at_once"]) >= 3 and len(found["at_once"]) == 120
    assert found["left_out"] == 0


def test_a_span_has_what_a_drawing_needs(api: Api) -> None:
    """V1: when it was opened, ran and ended, and when a person was asked by it or by a call below it."""
    found = api.get("/api/history").body
    spans = {found["tools"][span[1]]["tool"]: span for span in found["spans"]}
    asked = api.call(spans["ask_colour"][0])
    assert spans["ask_colour"][2:6] == [asked["opened"], asked["started"], asked["finished"], "ok"]
    [[since, until_]] = spans["ask_colour"][6]
    assert asked["opened"] <= since < until_ - 0.05 and until_ <= asked["finished"]
    assert spans["give_up"][5] == "failed" and spans["page"][6:] in ([], [[], [], []])


def test_filters_narrow_spans_but_not_the_counts_of_the_chips(api: Api) -> None:
    """V1: a chip says how many there are of its kind, whichever is chosen."""
    found = api.get("/api/history?outcome=failed,lost").body
    assert (found["calls"], found["failed"], len(found["spans"])) == (7, 1, 1)
    assert {one["tool"]: one["shown"] for one in found["tools"]}["page"] == 0
    few = api.get("/api/history?spans=2").body
    assert len(few["spans"]) == 2 and few["left_out"] == 5
    assert "failed" in [span[5] for span in few["spans"]], "a failed call is drawn before others"
    assert api.get("/api/history?tool=page").body["calls"] == 3
    assert api.get(f"/api/history?until={found['since']}").body["calls"] == 0


def test_lists_show_trees_and_are_sorted_counted_and_paged(api: Api) -> None:
    """V1: roots with the number of all calls below them; every order, and pages that join."""
    page = api.get("/api/calls?state=finished&roots=true&below=true&count=true").body
    assert (page["total"], page["roots"]) == (7, 3)
    below = {one["tool"]: one.get("below") for one in page["calls"]}
    assert below == {
        "report": {"total": 4, "live": 0, "failed": 0},
        "give_up": None,
        "ask_colour": None,
    }
    assert listed(api, "roots=true&sort=opened") == ["report", "give_up", "ask_colour"]
    assert listed(api, "sort=tool")[0] == "ask_colour" and listed(api, "sort=-duration")[-1] != "ask_colour"
    assert listed(api, "sort=opened&limit=2") + listed(api, "sort=opened&skip=2") == listed(
        api, "sort=opened"
    )
    assert listed(api, "asked=true") == ["ask_colour"]
    assert listed(api, "slower=true") == []
    assert listed(api, "outcome=failed,lost") == ["give_up"]
    assert listed(api, "caller=nobody") == []


def test_a_filtered_list_has_the_calls_above_those_it_lists(api: Api) -> None:
    """V1: at any depth, each once, and none that is on the page already."""
    page = api.get("/api/calls?state=finished&tool=page&above=true").body
    above = {one["id"]: one for one in page["above"]}
    assert len(page["calls"]) == 3 and "report" in {one["tool"] for one in above.values()}
    for one in page["calls"]:
        while one["parent"]:
            one = above.pop(one["parent"], None) or api.call(one["parent"])
    assert not above, "every one of them is above a call of the page"
    assert api.get("/api/calls?state=finished&above=true").body["above"] == []
    assert "above" not in api.get("/api/calls?state=finished&tool=page").body


@pytest.mark.parametrize(
    "query",
    [
        "sort=size",
        "sort=opened",
        "skip=1",
        "asked=true&state=live",
        "roots=maybe",
        "outcome=ok,bad",
        "since=x",
    ],
)
def test_a_list_refuses_what_it_cannot_do(api: Api, query: str) -> None:
    """V4: with the field; live calls have no fixed order, so none is promised."""
    answer = api.get(f"/api/calls?{query}")
    assert answer.status == 422 and answer.error["fields"] == [query.partition("=")[0]]


def test_an_export_has_the_calls_of_the_list(api: Api) -> None:
    """H6: the same filters; one call, or filters, but not both."""
    text = api.get("/api/export?outcome=failed&tool=give_up").body
    lines = [json.loads(line) for line in text.splitlines()]
    assert {line["fact"]["tool"] for line in lines if line.get("seq") == 1} == {"give_up"}
    whole = api.get("/api/export?tool=page").body.splitlines()
    assert len({json.loads(line)["call"] for line in whole}) == 3
    assert api.get("/api/export?call=abcd&tool=page").error["fields"] == ["call"]


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ([], [0, 0, 0, 0]),
        ([(0.0, 4.0)], [1, 1, 1, 1]),
        ([(0.5, 1.5), (1.0, 1.2)], [1, 2, 0, 0]),
        ([(-5.0, 0.5), (3.5, 9.0)], [1, 0, 0, 1]),
        ([(1.0, 2.0), (2.0, 3.0)], [0, 1, 1, 0]),
        ([(5.0, 6.0), (-2.0, -1.0)], [0, 0, 0, 0]),
        ([(1.0, 1.0), (0.5, 1.5)], [1, 1, 0, 0]),
    ],
)
def test_the_most_at_once_is_counted_in_each_part(
    runs: list[tuple[float, float]], expected: list[int]
) -> None:
    """V1: a call counts in every part that it runs in, and one that follows another is not beside it."""
    assert count_at_once(runs, 0.0, 4.0, 4) == expected


@pytest.mark.parametrize(
    ("facts", "marks"),
    [
        ([Started(1.0)], ([], [], [])),
        ([Asked(1.0, Question("q", "k", "approval")), Answered(3.0, "q", Answer()), Started(3.0)],
         ([(1.0, 3.0)], [], [])),
        ([Started(1.0), Asked(2.0, Question("q", "k", "below"))], ([], [(2.0, 9.0)], [])),
        ([Started(1.0), Started(5.0, 2, spent_s=2.5)], ([], [], [(1.0, 3.5, 5.0)])),
        ([Started(1.0), Interrupted(4.0, 2.0), Started(5.0, 2, spent_s=2.0)], ([], [], [(1.0, 3.0, 5.0)])),
    ],
)  # fmt: skip
def test_marks_are_read_from_facts(facts: list[Fact], marks: Any) -> None:
    """V1, H4: questions, clocks that stood still for a call below, and attempts that were lost."""
    assert read_marks([OPENED, *facts, Finished(9.0, "ok")], 9.0) == marks
