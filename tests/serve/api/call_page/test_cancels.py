"""Cancels with a delay over the operator's API: they can be withdrawn, and come without who asked."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator

from afoot.wire.framing import ServerSentEvent
from tests.e2e.gateway import Gateway, until
from tests.serve.api_client import Api


def test_a_delayed_cancel_comes_by_itself(api: Api) -> None:
    """X1: nobody has to be there when its time is over; the reason is recorded."""
    call = api.start("doze")
    answer = api.post(f"/api/calls/{call}/cancel", {"reason": "the wrong one", "after_s": 0.3})
    assert (answer.status, answer.body["state"]) == (202, "running") or answer.body["state"] == "queued"
    assert 0 < answer.body["cancel_due"] - time.time() < 0.4  # two clocks
    assert api.ended(call)["failure"]["message"] == "cancelled: the wrong one"
    assert "cancel_due" not in api.call(call)


def test_a_pending_cancel_is_withdrawn(api: Api) -> None:
    """X1: nothing has happened to the call, and nothing will."""
    call = api.start("doze")
    api.post(f"/api/calls/{call}/cancel", {"after_s": 0.3})
    assert "cancel_due" in api.call(call)
    assert api.send("DELETE", f"/api/calls/{call}/cancel", None, {}).status == 200
    assert "cancel_due" not in api.call(call)
    other = api.start("doze")  # its cancel comes later than the one that was withdrawn would have
    api.post(f"/api/calls/{other}/cancel", {"after_s": 0.3})
    api.ended(other)
    assert api.call(call)["state"] == "running"
    kinds = [one["fact"]["type"] for one in api.get(f"/api/calls/{call}/story").body["facts"]]
    assert "cancel_requested" not in kinds
    api.post(f"/api/calls/{call}/cancel", {})


def test_every_watcher_hears_of_a_pending_cancel_and_of_its_withdrawal(api: Api) -> None:
    """X1, H2: who watches sees it come and go; who comes later has it in the snapshot."""
    call = api.start("doze")
    path = f"/api/calls/{call}/cancel"
    with api.stream("/api/events") as stream:
        first = next(stream)
        due = api.post(path, {"after_s": 30}).body["cancel_due"]
        _until_heard(stream, call, due)
        shown = next(one for one in api.get("/api/snapshot").body["calls"] if one["id"] == call)
        assert shown["cancel_due"] == due
        api.send("DELETE", path, None, {})
        _until_heard(stream, call, None)
    with api.stream("/api/events", last_event_id=first.id) as stream:
        _until_heard(stream, call, None)  # the watcher may have left before it was withdrawn
    api.post(path, {})


def _until_heard(stream: Iterator[ServerSentEvent], call: str, due: float | None) -> None:
    """Read on until a reading of this call says that its cancel comes then."""
    for event in stream:
        for one in json.loads(event.data).get("readings", []):
            if one["call"] == call and one["cancel_due"] == due:
                return
    raise AssertionError("the stream ended")


def test_a_cancel_at_once_replaces_a_pending_one(api: Api) -> None:
    """X1: the person has lost patience; the call ends once."""
    call = api.start("doze")
    api.post(f"/api/calls/{call}/cancel", {"reason": "later", "after_s": 30})
    api.post(f"/api/calls/{call}/cancel", {"reason": "now"})
    assert api.ended(call)["failure"]["message"] == "cancelled: now"


def test_without_a_pending_cancel_nothing_is_withdrawn(api: Api) -> None:
    """X1: 409 for a call that nobody cancels, that stops already, or that is over; 422 for an odd delay."""
    call = api.start("doze")
    path = f"/api/calls/{call}/cancel"
    assert api.send("DELETE", path, None, {}).error["message"].endswith("has no pending cancel")
    for after_s in (-1, 61, "soon"):
        answer = api.post(path, {"after_s": after_s})
        assert (answer.status, answer.error["fields"]) == (422, ["after_s"])
    api.post(path, {})
    api.ended(call)
    assert api.send("DELETE", path, None, {}).status == 409
    assert api.post(path, {"after_s": 1}).status == 409


def test_a_call_that_ends_before_its_cancel_is_left_alone(api: Api) -> None:
    """X1: the end is the call's own."""
    call = api.start("demolish", house="a")
    api.post(f"/api/calls/{call}/cancel", {"after_s": 0.2})
    api.post(f"/api/questions/{api.asked(call)['id']}/answer", {"content": {"decision": "skip"}})
    assert api.ended(call)["outcome"] == "refused"
    other = api.start("doze")
    api.post(f"/api/calls/{other}/cancel", {"after_s": 0.2})
    api.ended(other)
    until(lambda: api.call(call)["outcome"] == "refused", "the same end")


def caller(gateway: Gateway, name: str) -> Api:
    """The API for who may start calls, and see its own."""
    command = [sys.executable, "-m", "afoot", "tokens", "add", name, "--scope", "call"]
    made = subprocess.run(command, env=gateway.environment, capture_output=True, text=True, check=True)
    api = Api(gateway)
    api.token = made.stdout.strip()
    return api


def test_the_caller_of_a_call_takes_back_no_cancel_of_somebody_else(gateway: Gateway, api: Api) -> None:
    """X1, S2: a program that is to be stopped neither withdraws that nor puts it off; it may stop at once."""
    own = caller(gateway, "worker")
    call = own.start("doze")
    path = f"/api/calls/{call}/cancel"
    due = api.post(path, {"after_s": 30, "reason": "enough"}).body["cancel_due"]
    assert own.post(path, {"after_s": 60}).body["cancel_due"] == due
    assert own.send("DELETE", path, None, {}).status == 403
    assert api.call(call)["cancel_due"] == due
    assert own.post(path, {}).status == 202
    assert own.ended(call)["outcome"] == "cancelled"


def test_the_caller_of_a_call_takes_back_its_own_cancel(gateway: Gateway, api: Api) -> None:
    """X1, S2: and puts it off; so may the operator."""
    own = caller(gateway, "other")
    call = own.start("doze")
    path = f"/api/calls/{call}/cancel"
    first = own.post(path, {"after_s": 30}).body["cancel_due"]
    assert own.post(path, {"after_s": 60}).body["cancel_due"] > first
    assert own.send("DELETE", path, None, {}).status == 200
    own.post(path, {"after_s": 60})
    assert api.send("DELETE", path, None, {}).status == 200
    own.post(path, {})
