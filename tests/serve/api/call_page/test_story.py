"""The story of a call over the operator's API: the call and all calls below it, in order of time."""

from typing import Any

from afoot.core.facts import Reading, Sample
from afoot.serve.api.call_page.story import thinned
from tests.e2e.gateway import until
from tests.serve.api_client import Api


def story(api: Api, call: str) -> dict[str, Any]:
    """The story of a call."""
    answer = api.get(f"/api/calls/{call}/story")
    assert answer.status == 200, answer
    return dict(answer.body)


def test_a_story_has_the_facts_and_readings_of_all_calls_in_order_of_time(api: Api) -> None:
    """V1: messages and log lines of the calls below are there, without a setting."""
    call = api.start("branch", width=3)
    api.ended(call)
    told = story(api, call)
    assert [one["tool"] for one in told["calls"]] == ["branch", "leaf", "leaf", "leaf"]
    assert {one["parent"] for one in told["calls"][1:]} == {call}
    times = [one["fact"]["at"] for one in told["facts"]]
    assert times == sorted(times)
    logged = [one["fact"]["text"] for one in told["facts"] if one["fact"]["type"] == "logged"]
    assert sorted(logged) == ["leaf 0 is dry", "leaf 1 is dry", "leaf 2 is dry"]
    said = {one["reading"]["message"] for one in told["readings"]}
    assert {"begins", "leaf 0 is done", "leaf 2 is done"} <= said
    assert told["left_out"] == told["facts_left_out"] == 0
    assert told["wire"] is None, "nothing is recorded"


def test_reports_that_the_history_does_not_have_are_counted(api: Api) -> None:
    """V1, H1: one reading a second is kept; a story says how many there were between them."""
    call = api.start("sing", lines=300)
    api.ended(call)
    readings = story(api, call)["readings"]
    assert len(readings) < 300
    assert sum(1 + one.get("left_out", 0) for one in readings) == 300
    assert readings[-1]["reading"]["message"] == "line 300"


def test_a_long_result_is_told_by_its_size(api: Api) -> None:
    """V1, H8: a story of a large result is small; the call itself has the result."""
    call = api.start("heap", size=1_000_000)
    api.ended(call)
    finished = next(one["fact"] for one in story(api, call)["facts"] if one["fact"]["type"] == "finished")
    assert finished["result"]["content"]["omitted_bytes"] > 1_000_000
    assert len(api.call(call)["result"]["content"][0]["text"]) == 1_000_000


def test_a_story_of_a_live_call_ends_with_what_was_said_last(api: Api) -> None:
    """V1: the facts and the newest reading, although the history keeps one reading a second."""
    call = api.start("wait_and_talk")
    said = until(lambda: api.call(call)["message"] == "the last word", "its last message")
    told = story(api, call)
    assert said and told["calls"][0]["state"] == "running"
    assert told["readings"][-1]["reading"]["message"] == "the last word"
    assert sum(1 + one.get("left_out", 0) for one in told["readings"]) == 3
    api.post(f"/api/calls/{call}/cancel", {})


def test_a_story_has_many_calls(api: Api) -> None:
    """V1: each of 80 calls below another, once."""
    call = api.start("branch", width=80)
    api.ended(call)
    told = story(api, call)
    assert len(told["calls"]) == 81
    assert {one["state"] for one in told["calls"]} == {"finished"}


def test_an_unknown_call_has_no_story(api: Api) -> None:
    """E5: 404, as for the call itself."""
    assert api.get("/api/calls/nobody/story").status == 404


def test_thinned_readings_keep_the_first_the_last_and_the_number_of_all() -> None:
    """V1: whatever the number, none is lost from the count."""
    for count in (5, 20, 21, 100, 997):
        samples = [Sample("a", n + 1, Reading(float(n)), left_out=n % 3) for n in range(count)]
        for most in (20, 50):
            kept = thinned(samples, most)
            assert len(kept) <= most or len(samples) <= most
            assert (kept[0].number, kept[-1].number) == (1, count)
            assert [one.number for one in kept] == sorted({one.number for one in kept})
            total = sum(one.left_out + 1 for one in samples)
            assert sum(one.left_out + 1 for one in kept) == total
