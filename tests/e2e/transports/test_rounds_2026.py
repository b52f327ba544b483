"""Questions on 2026-07-28 by hand: rounds, their sealed state, who follows, and who may leave when."""

import socket
import struct
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from afoot.wire import sealed_state
from tests.e2e.gateway import Gateway
from tests.e2e.raw_client import Http, Message, call, events, frames, last

ADA = {"name": {"action": "accept", "content": {"name": "Ada"}}}
YES: Message = {"action": "accept", "content": {}}
AGE = {"age": {"action": "accept", "content": {"age": 36}}}


def opened(http: Http, tool: str, tag: str, **meta: Any) -> Message:
    """The first round of a call that asks."""
    result: Message = http.ask(call(tool, {"tag": tag}, **meta))["result"]
    assert result["resultType"] == "input_required"
    return result


def retry(tool: str, tag: str, state: str, answers: Message | None = None, **rest: Any) -> Message:
    """The request that goes on with a call."""
    more = {} if answers is None else {"inputResponses": answers}
    return call(tool, {"tag": tag}, rest.pop("id", 2), requestState=state, **more, **rest)


def test_a_round_asks_and_its_retry_goes_on(gateway: Gateway, fresh: Callable[[], str]) -> None:
    """Q1: a question ends the request; the retry finds the same running call, under a new id."""
    tag = fresh()
    with Http(gateway.url) as http:
        first = opened(http, "ask_name", tag)
        asked = first["inputRequests"]["name"]
        assert asked["method"] == "elicitation/create"
        assert asked["params"]["requestedSchema"]["required"] == ["name"]
        done = http.ask(retry("ask_name", tag, first["requestState"], ADA))
    assert done["id"] == 2 and done["result"]["structuredContent"]["content"] == {"name": "Ada"}
    assert gateway.marks(tag) == ["ran", "answered accept"]


def test_questions_of_one_pass_share_a_round(gateway: Gateway, fresh: Callable[[], str]) -> None:
    """Q1 f, d: both at once; what is missing or does not fit is asked for again, other keys are ignored."""
    tag = fresh()
    with Http(gateway.url) as http:
        first = opened(http, "ask_two_at_once", tag)
        assert set(first["inputRequests"]) == {"name", "age"}
        wrong = {**ADA, "age": {"action": "accept", "content": {"age": "old"}}, "other": {"action": "accept"}}
        second = http.ask(retry("ask_two_at_once", tag, first["requestState"], wrong))["result"]
        assert set(second["inputRequests"]) == {"age"}
        assert second["requestState"] != first["requestState"]
        done = http.ask(retry("ask_two_at_once", tag, second["requestState"], AGE))["result"]
    assert done["structuredContent"] == {"name": {"name": "Ada"}, "age": {"age": 36}}


def test_a_client_that_closes_first_after_a_round_cancels_nothing(
    gateway: Gateway, fresh: Callable[[], str]
) -> None:
    """Q1 a, b: once the last frame is out, leaving means nothing; the call is parked."""
    tag = fresh()
    with Http(gateway.url) as http:
        response = http.post(call("ask_two_in_turn", {"tag": tag}, progressToken=1))
        assert response.getheader("content-type") == "text/event-stream"
        first = next(one["result"] for one in events(response) if isinstance(one, dict) and "result" in one)
        reset(http)
    with Http(gateway.url) as http:
        second = last(http.post(retry("ask_two_in_turn", tag, first["requestState"], ADA)))["result"]
        done = http.ask(retry("ask_two_in_turn", tag, second["requestState"], AGE))["result"]
    assert done["structuredContent"] == {"name": {"name": "Ada"}, "age": {"age": 36}}
    assert gateway.marks(tag) == ["ran"]


def test_the_same_state_sent_twice_gives_two_followers(gateway: Gateway, fresh: Callable[[], str]) -> None:
    """Q1 d: both get the result of the one call."""
    tag = fresh()
    with Http(gateway.url) as http, Http(gateway.url) as other:
        state = opened(http, "ask_then_nap", tag)["requestState"]
        http.put(retry("ask_then_nap", tag, state, ADA))
        other.put(retry("ask_then_nap", tag, state, ADA, id="other"))
        found = [http.take(), other.take()]
        ends = [last(response) for response in found]
    assert [end["id"] for end in ends] == [2, "other"]
    assert ends[0]["result"]["content"] == ends[1]["result"]["content"]
    assert gateway.marks(tag).count("ran") == 1


def test_a_call_is_cancelled_only_when_its_last_follower_goes(
    gateway: Gateway, fresh: Callable[[], str]
) -> None:
    """Q1 d, X1: of two followers one may leave; with the last the call ends."""
    tag = fresh()
    with Http(gateway.url) as third, Http(gateway.url) as http:
        state = opened(http, "ask_then_linger", tag)["requestState"]
        http.put(retry("ask_then_linger", tag, state, ADA))
        gateway.until_marked(tag, "answered")
        with Http(gateway.url) as other:
            other.put(retry("ask_then_linger", tag, state))
            assert "result" in third.ask(call("nap"))  # the other one follows by now
        assert "result" in third.ask(call("nap", {"sleep_s": 0.3}))
        assert gateway.marks(tag) == ["ran", "answered"]
    gateway.until_marked(tag, "cancelled: the client closed the stream")


def test_answers_without_a_state_open_a_call_with_them(gateway: Gateway, fresh: Callable[[], str]) -> None:
    """Q1 e: questions with those keys are answered at once."""
    tag = fresh()
    with Http(gateway.url) as http:
        done = http.ask(call("ask_name", {"tag": tag}, inputResponses=ADA))["result"]
    assert done["structuredContent"] == {"action": "accept", "content": {"name": "Ada"}}


def test_a_state_that_is_not_right_is_refused(gateway: Gateway, fresh: Callable[[], str]) -> None:
    """Q1 c: changed, foreign, expired, for another call or caller: -32602, and the question stays open."""
    tag = fresh()
    with Http(gateway.url) as http:
        state = opened(http, "ask_name", tag)["requestState"]
        key = bytes.fromhex((gateway.folder / "home" / "key").read_text())
        mark = sealed_state.unseal_request_state(state, key, 0.0)
        wrong = {
            "tampered": (state + "-TAMPERED", "ask_name", tag),
            "a letter": (state[:30] + ("A" if state[30] != "A" else "B") + state[31:], "ask_name", tag),
            "a stranger": (state + "!!!!", "ask_name", tag),
            "no state": ("", "ask_name", tag),
            "no base64": ("é", "ask_name", tag),
            "foreign": (sealed_state.seal(mark, b"another gateway's key"), "ask_name", tag),
            "expired": (sealed_state.seal(replace(mark, expires=1.0), key), "ask_name", tag),
            "another caller": (
                sealed_state.seal(replace(mark, caller="session:x"), key),
                "ask_name",
                tag,
            ),
            "unknown call": (sealed_state.seal(replace(mark, call="0" * 32), key), "ask_name", tag),
            "another tool": (state, "ask_then_linger", tag),
            "other arguments": (state, "ask_name", tag + "x"),
        }
        for name, (sent, tool, its_tag) in wrong.items():
            response = http.post(retry(tool, its_tag, sent, ADA))
            error = last(response).get("error", {})
            assert (name, response.status, error.get("code")) == (name, 400, -32602)
            assert "requestState" in error["message"], name
        assert (
            http.ask(retry("ask_name", tag, state, ADA))["result"]["structuredContent"]["action"] == "accept"
        )
    assert gateway.marks(tag).count("ran") == 1


def test_a_caller_that_cannot_be_asked_leaves_it_to_the_operator(
    gateway: Gateway, fresh: Callable[[], str]
) -> None:
    """Q3, Q4: no elicitation, so no round; roots and sampling are declined at once."""
    tag = fresh()
    with Http(gateway.url) as http:
        declined = http.ask(call("list_folders", capabilities={}))["result"]
        assert declined["isError"] and declined["_meta"]["dev.afoot/error"]["category"] == "refused"
        http.put(call("ask_name", {"tag": tag}, capabilities={}))
        gateway.until_marked(tag, "ran")


def test_a_missing_capability_is_refused_before_anything_runs(gateway: Gateway) -> None:
    """E4: a tool that needs sampling and a caller without: -32021, HTTP 400, naming it."""
    with Http(gateway.url) as http:
        response = http.post(call("needs_model", capabilities={"elicitation": {}}))
        error = last(response)["error"]
        assert (response.status, error["code"]) == (400, -32021)
        assert error["data"] == {"requiredCapabilities": {"sampling": {}}}
        assert http.ask(call("needs_model"))["result"]["content"][0]["text"] == "has one"


def test_after_eight_rounds_the_caller_is_asked_no_more(gateway: Gateway, fresh: Callable[[], str]) -> None:
    """Q1 g: official clients give up at ten, so then the operator is asked, and the request waits."""
    tag = fresh()
    with Http(gateway.url) as http:
        state = opened(http, "ask_on_and_on", tag)["requestState"]
        for number in range(2, 9):
            state = http.ask(retry("ask_on_and_on", tag, state, {f"q{number - 1}": YES}))["result"][
                "requestState"
            ]
        http.put(retry("ask_on_and_on", tag, state, {"q8": YES}))
        gateway.until_marked(tag, "8")
        http.socket.settimeout(0.4)
        with pytest.raises(TimeoutError):
            http.take()


def test_progress_of_a_retry_goes_to_its_own_token(gateway: Gateway, fresh: Callable[[], str]) -> None:
    """T1, P4: each request of a call has its token; the numbers rise over all of them."""
    tag = fresh()
    with Http(gateway.url) as http:
        *before, first = frames(http.post(call("ask_two_in_turn", {"tag": tag}, progressToken="a")))
        state = first["result"]["requestState"]
        *then, second = frames(http.post(retry("ask_two_in_turn", tag, state, ADA, progressToken="b")))
    assert [one["params"]["progressToken"] for one in before + then] == ["a", "b"]
    assert [one["params"]["progress"] for one in before + then] == [1, 2]
    assert second["result"]["resultType"] == "input_required"


def reset(http: Http) -> None:
    """Leave without a word more, as a client does that has what it wanted."""
    http.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    http.close()
