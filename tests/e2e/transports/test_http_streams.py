"""Answers as JSON and as streams, slow readers, readers that vanish, and keepalives, over raw sockets."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Thread

import pytest

from tests.e2e.gateway import Gateway, serving, until
from tests.e2e.raw_client import Http, Message, call, events, frames, last, request

BIG = 950_000
REPORTS = 30_000


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway whose waits are short and that sends every report."""
    settings = {"keepalive_s": 0.3, "sse_after_s": 0.5, "progress_hz": 0}
    with serving(tmp_path_factory.mktemp("impatient"), settings) as started:
        yield started


def legacy_call(tool: str, id: int | str = 1, token: object = None, **arguments: object) -> Message:
    """A `tools/call` of the handshake era."""
    meta = {} if token is None else {"_meta": {"progressToken": token}}
    return request("tools/call", {"name": tool, "arguments": arguments, **meta}, id)


def test_a_silent_call_is_answered_as_json(gateway: Gateway) -> None:
    """T1, P6: without a report there is no stream, whatever token was sent; T3: the token is echoed."""
    with Http(gateway.url) as http:
        response = http.post(call("add", {"a": 1, "b": 1}, progressToken="t"))
        assert response.getheader("content-type") == "application/json"
        assert last(response)["result"]["_meta"]["progressToken"] == "t"
        assert "progressToken" not in http.ask(call("add", {"a": 1, "b": 1}))["result"]["_meta"]


def test_the_first_report_opens_the_stream(gateway: Gateway) -> None:
    """P6: progress on the request's own stream, in order, all before the result, which ends it."""
    with Http(gateway.url) as http:
        response = http.post(call("count_up", {"n": 3}, progressToken=7))
        assert response.getheader("content-type") == "text/event-stream"
        assert response.getheader("x-accel-buffering") == "no"
        *progress, result = frames(response)
        assert [one["params"]["progress"] for one in progress] == [1, 2, 3]
        assert {one["params"]["progressToken"] for one in progress} == {7}
        assert result["result"]["resultType"] == "complete"


def test_without_a_token_nothing_is_sent_but_the_result(gateway: Gateway) -> None:
    """T1: no token, no notification."""
    with Http(gateway.url) as http:
        assert len(frames(http.post(call("count_up", {"n": 3})))) == 1


def test_a_silent_call_becomes_a_stream_in_time_and_is_kept_alive(impatient: Gateway) -> None:
    """C6: after a while the stream opens, and comments keep it open; they are no events."""
    with Http(impatient.url) as http:
        response = http.post(call("nap", {"sleep_s": 1.5}))
        assert response.getheader("content-type") == "text/event-stream"
        seen = list(events(response))
    comments = [event for event in seen if isinstance(event, str)]
    assert 2 <= len(comments) <= 5
    assert isinstance(seen[-1], dict) and seen[-1]["result"]["content"][0]["text"] == "slept"


@pytest.mark.parametrize("era", ["2026-07-28", "handshake"])
def test_a_reader_that_reads_nothing_slows_nobody(
    impatient: Gateway, era: str, fresh: Callable[[], str]
) -> None:
    """P3, P5: the tool runs at full speed; the last value and the result come when reading resumes."""
    tag, calm = fresh(), fresh()
    size = 900  # far more than the system keeps for a connection
    with Http(impatient.url, receive_bytes=4096) as slow, Http(impatient.url) as other:
        other.ask(call("flood", {"n": REPORTS, "tag": calm, "size": size}))
        if era == "handshake":
            slow.shake_hands()
            slow.put(legacy_call("flood", 5, "t", n=REPORTS, tag=tag, size=size))
        else:
            slow.put(call("flood", {"n": REPORTS, "tag": tag, "size": size}, progressToken="t"))
        impatient.until_marked(tag, "")
        assert other.ask(call("add", {"a": 1, "b": 1}))["result"]["structuredContent"] == {"sum": 2}
        assert float(impatient.marks(tag)[0]) < 4 * float(impatient.marks(calm)[0]) + 1.0
        *progress, result = frames(slow.take())
    numbers = [one["params"]["progress"] for one in progress]
    assert numbers == sorted(set(numbers)) and numbers[-1] == REPORTS
    assert len(numbers) < REPORTS
    assert result["result"]["content"][0]["text"] == f"reported {REPORTS}"


def test_a_reader_that_takes_no_byte_is_taken_for_gone(tmp_path: Path, fresh: Callable[[], str]) -> None:
    """X1: a stream that accepts nothing for `stuck_s` is closed, and on 2026-07-28 that is a cancel."""
    tag = fresh()
    flooding = call("flood", {"n": 20_000, "tag": tag, "size": 900, "linger_on": True}, progressToken="t")
    with serving(tmp_path, {"stuck_s": 1, "progress_hz": 0}) as gateway:
        with Http(gateway.url, receive_bytes=4096) as http:
            http.put(flooding)
            gateway.until_marked(tag, "cancelled: ")


def test_a_vanished_client_cancels_its_call(gateway: Gateway, fresh: Callable[[], str]) -> None:
    """X1: on 2026-07-28 a closed stream is the cancel, before the stream opened and after."""
    tokens: list[Message] = [{}, {"progressToken": 1}]
    for token in tokens:
        tag = fresh()
        with Http(gateway.url) as http:
            http.put(call("linger", {"tag": tag}, **token))
            gateway.until_marked(tag, "started")
            if token:
                next(events(http.take()))
        gateway.until_marked(tag, "cancelled: the client closed the stream")


def test_a_vanished_session_stream_cancels_nothing(gateway: Gateway, fresh: Callable[[], str]) -> None:
    """X3: in the handshake era a lost stream is no cancel; the call runs to its end."""
    tag = fresh()
    with Http(gateway.url) as http:
        http.shake_hands()
        http.put(legacy_call("nap", 2, tag=tag, sleep_s=0.5))
        gateway.until_marked(tag, "started")
    gateway.until_marked(tag, "ended")


def test_a_call_that_lost_its_stream_can_be_cancelled(gateway: Gateway, fresh: Callable[[], str]) -> None:
    """X3: `notifications/cancelled` is matched by session and id, whether or not the stream lives."""
    tag = fresh()
    with Http(gateway.url) as http, Http(gateway.url) as second:
        http.shake_hands()
        second.session = http.session
        http.put(legacy_call("linger", "left", "t", tag=tag))
        next(events(http.take()))
        http.close()
        # The gateway has noticed once it has read on from another connection.
        assert "result" in second.ask(legacy_call("nap", 3, sleep_s=0.2))
        params = {"requestId": "left", "reason": "enough"}
        second.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}).read()
    gateway.until_marked(tag, "cancelled: enough")


def test_a_cancelled_request_is_answered_as_by_the_server_of_the_sdk(
    gateway: Gateway, fresh: Callable[[], str]
) -> None:
    """X3: a client of the handshake era waits for a response on HTTP, so it gets an error."""
    tag = fresh()
    with Http(gateway.url) as http, Http(gateway.url) as second:
        http.shake_hands()
        second.session = http.session
        http.put(legacy_call("linger", 4, "t", tag=tag))
        gateway.until_marked(tag, "started")
        params = {"requestId": 4, "reason": "no more"}
        second.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}).read()
        [answer] = [frame for frame in frames(http.take()) if "id" in frame]
        assert (answer["id"], answer["error"]["code"]) == (4, -32800)
    gateway.until_marked(tag, "cancelled: no more")


def test_two_clients_with_the_same_token_get_their_own_progress(gateway: Gateway) -> None:
    """T1, C8: a token belongs to its request; the same one elsewhere is another."""
    found: dict[int, list[Message]] = {}

    def count(n: int) -> None:
        with Http(gateway.url) as http:
            found[n] = frames(http.post(call("count_up", {"n": n}, progressToken="same")))

    threads = [Thread(target=count, args=(n,)) for n in (3, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for n in (3, 5):
        assert [frame["params"]["progress"] for frame in found[n][:-1]] == list(range(1, n + 1))
        assert found[n][-1]["result"]["content"][0]["text"] == f"counted to {n}"


def test_a_token_that_is_in_use_on_a_session_is_served_without_progress(
    gateway: Gateway, fresh: Callable[[], str]
) -> None:
    """T1: on one connection nobody could tell the two apart."""
    with ExitStack() as stack:
        first, second = (stack.enter_context(Http(gateway.url)) for _ in range(2))
        first.shake_hands()
        second.session = first.session
        first.put(legacy_call("count_up", 1, "same", n=10))
        response = first.take()
        next(events(response))
        assert len(frames(second.post(legacy_call("count_up", 2, "same", n=2)))) == 1
        assert len(frames(response)) >= 2


def test_a_result_too_large_for_a_stream_is_fetched_by_a_retry(gateway: Gateway) -> None:
    """Q1: on a committed 2026-07-28 stream a state-only round, whose retry is answered as JSON."""
    wanted = {"size": BIG, "reports": True}
    with Http(gateway.url) as http:
        response = http.post(call("big", wanted, progressToken=1))
        assert response.getheader("content-type") == "text/event-stream"
        round_ = frames(response)[-1]["result"]
        assert round_["resultType"] == "input_required" and "inputRequests" not in round_
        again = http.post(call("big", wanted, 2, requestState=round_["requestState"], progressToken=2))
        assert again.getheader("content-type") == "application/json"
        result = last(again)
    assert result["id"] == 2 and len(result["result"]["content"][0]["text"]) == BIG


def test_a_large_result_of_a_silent_call_comes_at_once(gateway: Gateway) -> None:
    """G3: what was not committed to a stream has no such limit."""
    with Http(gateway.url) as http:
        assert len(http.ask(call("big", {"size": BIG}))["result"]["content"][0]["text"]) == BIG


def test_a_large_result_is_one_event_in_the_handshake_era(gateway: Gateway) -> None:
    """P6: there is no other way; the docs name the client's setting."""
    with Http(gateway.url) as http:
        http.shake_hands()
        found = frames(http.post(legacy_call("big", 2, "t", size=BIG, reports=True)))
    assert len(found) == 2 and len(found[-1]["result"]["content"][0]["text"]) == BIG


def test_a_slow_reader_does_not_disturb_another_call(impatient: Gateway, fresh: Callable[[], str]) -> None:
    """P5, C8: while one stream is stuck, another one flows."""
    tag = fresh()
    with Http(impatient.url, receive_bytes=4096) as slow, Http(impatient.url) as quick:
        slow.put(call("flood", {"n": 10_000, "tag": tag, "size": 900}, progressToken="t"))
        numbers = [
            frame["params"]["progress"]
            for frame in frames(quick.post(call("count_up", {"n": 5, "step_s": 0.02}, progressToken="t")))[
                :-1
            ]
        ]
        assert numbers == [1, 2, 3, 4, 5]
        until(lambda: impatient.marks(tag), "the flood")
        assert last(slow.take())["result"]["content"][0]["text"] == "reported 10000"
