"""Purge and export over the API: the calls that are deleted, and the history as lines."""

import json
from threading import Event, Thread
from typing import Any

import pytest

from tests.e2e.gateway import until
from tests.serve.api_client import Api, Recorder


def exported(api: Api, query: str = "") -> list[dict[str, Any]]:
    """The lines of the history."""
    answer = api.get(f"/api/export{query}")
    assert answer.status == 200 and answer.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in answer.body.splitlines()]


def over(api: Api) -> str:
    """A call that is over, and that the gateway has let go of."""
    call = str(api.ended(api.start("add", a=1, b=2))["id"])
    until(
        lambda: call not in {one["id"] for one in api.get("/api/snapshot").body["calls"]}, "it lives no more"
    )
    return call


def test_calls_go_by_name_by_age_and_by_count_and_living_ones_stay(api: Api) -> None:
    """H6: and what is gone is found nowhere."""
    calls = [over(api) for _ in range(4)]
    live = api.start("linger", tag="purge-live")
    assert api.post("/api/purge", {"call": calls[1]}).body == {"purged": 1}
    assert api.get(f"/api/calls/{calls[1]}").status == 404
    assert api.post("/api/purge", {"call": live}).status == 409
    for nobody in ({"older_s": 3600}, {"older_s": 1e308}, {"keep": 10**30}):
        assert api.post("/api/purge", nobody).body == {"purged": 0}
    assert api.post("/api/purge", {"keep": 2}).body["purged"] >= 1
    left = [one["id"] for one in api.get("/api/calls").body["calls"]]
    assert left == [live, *calls[:1:-1]]
    assert api.post("/api/purge", {"keep": 1}).body == {"purged": 1}
    assert api.post("/api/purge", {"everything": True}).body == {"purged": 1}
    assert api.post("/api/purge", {"keep": 0}).body == {"purged": 0}
    assert [one["id"] for one in api.get("/api/calls").body["calls"]] == [live]
    assert api.post(f"/api/calls/{live}/cancel", {}).status == 202
    assert api.ended(live)["outcome"] == "cancelled"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"keep": 1, "everything": True},
        {"keep": -1},
        {"older_s": -1},
        {"everything": False},
        {"call": ""},
        {"x": 1},
    ],
)
def test_a_purge_that_does_not_say_what_goes_is_refused(api: Api, body: dict[str, object]) -> None:
    """H6: nothing goes by mistake."""
    assert api.post("/api/purge", body).status == 422


def test_the_history_is_exported_as_lines(api: Api) -> None:
    """H6: facts with their places, one call after another."""
    first = api.ended(api.start("count_up", n=2, step_s=0.0))["id"]
    second = api.ended(api.start("add", a=1, b=2))["id"]
    lines = exported(api)
    calls = list(dict.fromkeys(line["call"] for line in lines))
    assert calls.index(second) < calls.index(first)
    ours = [line for line in lines if line["call"] == first]
    kinds = [line["fact"]["type"] for line in ours if "fact" in line]
    assert kinds[0] == "opened" and "finished" in kinds
    assert [line["seq"] for line in ours if "seq" in line] == list(range(1, len(kinds) + 1))
    assert any("reading" in line for line in ours)
    assert exported(api, f"?call={first}") == ours
    assert api.get("/api/export?call=nobody00").status == 404
    assert api.get("/api/export?x=1").status == 422


def test_a_watcher_goes_on_after_a_purge(api: Api) -> None:
    """H2, H6: places stay what they were; one whose place is gone begins anew and says so."""
    call = over(api)
    before = api.get("/api/snapshot").body
    assert api.post("/api/purge", {"call": call}).body == {"purged": 1}
    after = api.get("/api/snapshot").body
    assert (after["epoch"], after["pos"]) == (before["epoch"], before["pos"])
    again = over(api)
    assert api.get("/api/snapshot").body["pos"] > before["pos"]
    with api.stream("/api/events", **{"last-event-id": f"{before['epoch']}:{before['pos']}"}) as events:
        event = next(events)
        assert event.event == "changes" and json.loads(event.data)["facts"][0]["call"] == again


def test_a_watcher_sees_the_end_of_a_call_that_is_purged_at_once(api: Api) -> None:
    """H2, H6: before its next frame; else the call would run for ever on somebody's screen."""
    done = Event()

    def keep_purging() -> None:
        while not done.is_set():
            api.post("/api/purge", {"everything": True})

    purging = Thread(target=keep_purging)
    with Recorder(api, "/api/events") as watcher:
        until(lambda: watcher.events, "the snapshot")
        purging.start()
        try:
            calls = [api.start("add", a=n, b=1) for n in range(30)]
            until(lambda: {(call, 4) for call in calls} <= set(watcher.facts), "the end of each")
        finally:
            done.set()
            purging.join()
        seen = [fact for fact in watcher.facts if fact[0] in calls]
    assert sorted(seen) == sorted((call, seq) for call in calls for seq in (1, 2, 3, 4))
