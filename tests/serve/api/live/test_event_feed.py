"""Streams of the operator's API: the past, then the present, without a gap or a repeat."""

import json
import sqlite3
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

from afoot.wire.framing import ServerSentEvent
from tests.e2e.gateway import Gateway, serving, until
from tests.serve.api_client import Api, Recorder, silent_reader


def facts(events: list[ServerSentEvent]) -> list[int]:
    """The numbers of the facts of one call, in the order they came."""
    return [json.loads(event.data)["seq"] for event in events if event.event == "fact"]


def kinds(events: list[ServerSentEvent]) -> list[str]:
    """What the facts were."""
    return [json.loads(event.data)["fact"]["type"] for event in events if event.event == "fact"]


def position(event: ServerSentEvent) -> int:
    """The number at the end of its id."""
    return int(event.id.rpartition(":")[2])


def of_call(facts: list[dict[str, Any]], call: str) -> list[dict[str, Any]]:
    """Those of one call: the gateway is shared with other tests."""
    return [one["fact"] for one in facts if one["call"] == call]


def ended(api: Api, call: str) -> bool:
    """Whether a call is over."""
    return api.call(call)["outcome"] is not None


def test_a_call_started_here_is_streamed_to_its_end(api: Api) -> None:
    """V4: POST without `respond-async` is the call's events; ids only on facts; the result is last."""
    body = {"tool": "count_up", "arguments": {"n": 5}}
    with api.stream("/api/calls", body) as stream:
        events = list(stream)
    assert kinds(events)[:2] == ["opened", "started"] and "finished" in kinds(events)
    assert facts(events) == list(range(1, len(facts(events)) + 1))
    assert all(bool(event.id) == (event.event == "fact") for event in events)
    numbers = [json.loads(event.data)["reading"]["progress"] for event in events if event.event == "reading"]
    assert numbers == sorted(numbers) and numbers[-1] == 5
    last = next(json.loads(event.data) for event in events if '"finished"' in event.data)
    assert last["fact"]["result"]["content"][0]["text"] == "counted to 5"


def test_a_late_joiner_gets_the_past_and_then_the_present(api: Api) -> None:
    """H2: all facts once, the newest reading, then what comes."""
    call = api.start("linger", tag=uuid4().hex)
    until(lambda: api.call(call)["progress"], "a report")
    with api.stream(f"/api/calls/{call}/events") as stream:
        events = [next(stream) for _ in range(3)]
        assert [event.event for event in events] == ["fact", "fact", "reading"]
        api.post(f"/api/calls/{call}/cancel", {"reason": "seen"})
        events += list(stream)
    assert facts(events) == list(range(1, len(facts(events)) + 1))
    assert kinds(events)[2:4] == ["cancel_requested", "finished"]


def test_a_reader_that_reconnects_gets_exactly_the_rest(api: Api) -> None:
    """H2: Last-Event-ID, and `after`, go on behind that fact."""
    call = api.start("ask_two_in_turn", tag=uuid4().hex)
    api.asked(call)
    with api.stream(f"/api/calls/{call}/events") as stream:
        first = [event for event in (next(stream) for _ in range(3)) if event.event == "fact"]
    for name in ("Ann", 7):
        question = api.asked(call)
        key = "name" if name == "Ann" else "age"
        api.post(f"/api/questions/{question['id']}/answer", {"content": {key: name}})
        until(lambda question=question: api.question(call) != question, "the next")
    api.ended(call)
    last = first[-1].id
    with api.stream(f"/api/calls/{call}/events", last_event_id=last) as stream:
        rest = list(stream)
    everything = facts(first) + facts(rest)
    assert everything == list(range(1, len(everything) + 1))
    with api.stream(f"/api/calls/{call}/events?after={last.rpartition(':')[2]}") as stream:
        assert facts(list(stream)) == facts(rest)


def test_a_place_in_another_history_starts_anew_and_says_so(api: Api) -> None:
    """H2: an unknown epoch is a reset, never a silent gap."""
    call = api.start("add", a=1, b=1)
    api.ended(call)
    with api.stream(f"/api/calls/{call}/events", last_event_id="elsewhere:3") as stream:
        events = list(stream)
    assert events[0].event == "reset" and facts(events)[0] == 1
    assert api.get(f"/api/calls/{call}/events?after=x").status == 422


def test_the_past_alone_can_be_had(api: Api) -> None:
    """V2: `follow=no` ends where the present begins."""
    call = api.start("linger", tag=uuid4().hex)
    until(lambda: api.call(call)["progress"], "a report")
    with api.stream(f"/api/calls/{call}/events?follow=no") as stream:
        assert kinds(list(stream)) == ["opened", "started"]
    api.post(f"/api/calls/{call}/cancel", {})


def test_two_readers_see_the_same_facts(api: Api) -> None:
    """H2: a second watcher takes nothing from the first."""
    call = api.start("count_up", n=10)
    with (
        api.stream(f"/api/calls/{call}/events") as one,
        api.stream(f"/api/calls/{call}/events") as two,
    ):
        assert kinds(list(one))[:3] == kinds(list(two))[:3] == ["opened", "started", "finished"]


def test_everything_begins_with_a_snapshot(api: Api) -> None:
    """H2: what lives now, with its open questions and the server's time."""
    call = api.start("ask_name", tag=uuid4().hex)
    question = api.asked(call)
    with api.stream("/api/events") as stream:
        first = next(stream)
        assert first.event == "snapshot"
        snapshot = json.loads(first.data)
        assert abs(snapshot["now"] - time.time()) < 5
        assert first.id == f"{snapshot['epoch']}:{snapshot['pos']}"
        assert question["id"] in [one["id"] for one in snapshot["questions"]]
        assert call in [one["id"] for one in snapshot["calls"]]
        api.post(f"/api/questions/{question['id']}/answer", {"action": "decline"})
        frames = ((event, json.loads(event.data)["facts"]) for event in stream if event.event == "changes")
        changes, told = next((event, mine) for event, all_ in frames if (mine := of_call(all_, call)))
        assert position(changes) > position(first) and told[0]["type"] == "answered"


def test_frames_are_few_and_the_last_reading_is_among_them(api: Api) -> None:
    """H2: at most twenty frames a second a watcher, however much is reported."""
    with Recorder(api, "/api/events") as recorder:
        until(lambda: recorder.events, "a snapshot")
        began = time.monotonic()
        call = api.start("count_up", n=200, step_s=0.005)
        until(lambda: "released" in recorder.kinds(call), "its end")
        took = time.monotonic() - began
        frames = [json.loads(event.data) for event in recorder.events if event.event == "changes"]
    assert 3 <= len(frames) <= 20 * took + 2
    readings = [one for frame in frames for one in frame["readings"] if one["call"] == call]
    assert readings[-1]["reading"]["progress"] == 200 and readings[-1]["readings"] == 200


def test_a_watcher_that_reconnects_misses_nothing_and_sees_nothing_twice(api: Api) -> None:
    """H2: facts of all calls over two connections are each there once, in order."""
    with Recorder(api, "/api/events") as before:
        until(lambda: before.events, "a snapshot")
        calls = [api.start("count_up", n=3, step_s=0.02) for _ in range(10)]
        until(lambda: len(before.facts) > 5, "some facts")
    place = before.last
    seen = list(before.facts)
    calls += [api.start("add", a=n, b=1) for n in range(30)]
    until(lambda: all(ended(api, call) for call in calls), "their ends")
    with Recorder(api, "/api/events", last_event_id=place) as after:
        until(lambda: {call for call, _ in after.facts} >= set(calls[10:]), "the rest")
        until(
            lambda: len([one for one in seen + after.facts if one[0] in calls]) >= 4 * len(calls), "all facts"
        )
        assert after.events[0].event == "changes"
    everything = [one for one in seen + after.facts if one[0] in calls]
    assert len(everything) == len(set(everything))
    for call in calls:
        numbers = [seq for one, seq in everything if one == call]
        assert numbers == list(range(1, len(numbers) + 1))


def test_a_place_that_is_not_kept_is_a_reset_and_a_new_snapshot(api: Api) -> None:
    """H2: unknown epoch, or a position that is not there."""
    with api.stream("/api/events") as stream:
        epoch = json.loads(next(stream).data)["epoch"]
    for place in ("elsewhere:1", f"{epoch}:999999999", "rubbish", f"{epoch}:x"):
        with api.stream("/api/events", last_event_id=place) as stream:
            assert [next(stream).event, next(stream).event] == ["reset", "snapshot"]


def test_a_reader_that_reads_nothing_disturbs_nobody(api: Api) -> None:
    """V4: neither other watchers nor the calls wait for a silent one, or for one that vanished."""
    gone = silent_reader(api, "/api/events")
    stuck = silent_reader(api, "/api/events")
    try:
        with Recorder(api, "/api/events") as recorder:
            until(lambda: recorder.events, "a snapshot")
            gone.close()
            began = time.monotonic()
            calls = [api.start("big", size=15000) for _ in range(60)]
            until(lambda: {call for call, _ in recorder.facts} >= set(calls), "all calls")
            assert time.monotonic() - began < 8
    finally:
        stuck.close()


def test_long_values_are_left_out_of_everything_but_not_of_the_call(api: Api) -> None:
    """H2: the stream of everything stays small; the call itself has its whole result."""
    with Recorder(api, "/api/events") as recorder:
        until(lambda: recorder.events, "a snapshot")
        call = api.start("big", size=300_000)
        until(lambda: "finished" in recorder.kinds(call), "its end")
        assert all(len(event.data) < 100_000 for event in recorder.events)
    assert len(api.call(call)["result"]["content"][0]["text"]) == 300_000
    with api.stream(f"/api/calls/{call}/events") as stream:
        assert max(len(event.data) for event in stream) > 300_000


def test_a_history_that_cannot_be_written_is_told_and_watchers_still_see_everything(tmp_path: Path) -> None:
    """V4, H2: degraded is said with its reason; facts reach a watcher once, also after it is back."""
    with serving(tmp_path) as gateway:
        api = Api(gateway)
        with Recorder(api, "/api/events") as recorder:
            until(lambda: recorder.events, "a snapshot")
            blocker = _block(gateway)
            call = api.start("add", a=1, b=1)
            until(lambda: api.get("/healthz").body["status"] == "degraded", "degraded")
            assert api.get("/healthz").body["why"]
            until(lambda: "finished" in recorder.kinds(call), "its end, unrecorded")
            blocker.rollback()
            blocker.close()
            until(lambda: api.get("/healthz").body["status"] == "ok", "well again")
            until(lambda: ended(api, call), "its end in the history")
            later = api.start("add", a=2, b=2)
            until(lambda: "released" in recorder.kinds(later), "the next call")
            assert len(recorder.facts) == len(set(recorder.facts))


def test_a_watcher_that_comes_back_while_the_history_cannot_be_written_begins_anew(tmp_path: Path) -> None:
    """H2: facts that only memory has stand behind no position; one who resumes there would miss them."""
    with serving(tmp_path) as gateway:
        api = Api(gateway)
        with Recorder(api, "/api/events") as before:
            until(lambda: before.events, "a snapshot")
            recorded = api.start("add", a=1, b=1)
            until(lambda: "released" in before.kinds(recorded), "a recorded call")
        blocker = _block(gateway)
        call = api.start("linger", tag=uuid4().hex)
        until(lambda: api.get("/healthz").body["status"] == "degraded", "degraded")
        with Recorder(api, "/api/events", last_event_id=before.last) as during:
            until(lambda: len(during.events) > 1, "its beginning")
            assert [event.event for event in during.events[:2]] == ["reset", "snapshot"]
            api.post(f"/api/calls/{call}/cancel", {})
            until(lambda: "released" in during.kinds(call), "its end, unrecorded")
        blocker.rollback()
        blocker.close()


def test_a_snapshot_is_not_followed_by_facts_from_before_it(tmp_path: Path) -> None:
    """H2: nor when they are written only later, because the history could not be."""
    with serving(tmp_path) as gateway:
        api = Api(gateway)
        blocker = _block(gateway)
        over = api.start("add", a=1, b=1)
        until(lambda: api.get("/healthz").body["status"] == "degraded", "degraded")
        until(lambda: ended(api, over), "its end, unrecorded")
        with Recorder(api, "/api/events") as recorder:
            until(lambda: recorder.events, "a snapshot")
            blocker.rollback()
            blocker.close()
            until(lambda: api.get("/healthz").body["status"] == "ok", "well again")
            later = api.start("add", a=2, b=2)
            until(lambda: "released" in recorder.kinds(later), "the next call")
            assert recorder.kinds(over) == []


def _block(gateway: Gateway) -> sqlite3.Connection:
    """Hold the store as another program might."""
    blocker = sqlite3.connect(gateway.store, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    return blocker


def test_a_position_that_is_no_position_is_refused(api: Api) -> None:
    """H2, S8: a number that no history has, or that Python does not read; found by the fuzzer."""
    call = api.start("ask_name", tag=f"mark-{uuid4().hex}")
    for number in ("9" * 5000, "9" * 20):
        answer = api.get(f"/api/calls/{call}/events?after={number}&follow=no")
        assert answer.status == 422, (number[:30], answer.status)
