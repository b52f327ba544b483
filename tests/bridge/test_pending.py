"""What a client sees of a request's frames, and what it is told when no gateway answers."""

import json
from typing import Any

import pytest

from afoot.bridge.pending import BridgeRequest
from afoot.wire import jsonrpc

Message = dict[str, Any]
PROGRESS = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"_meta":{"dev.afoot/call":"c1"}}}'
WITHDRAWN = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"afoot-1"}}'
RESULT = b'{"id":1,"result":{},"jsonrpc":"2.0"}'


def pending(method: str = "tools/call", *, modern: bool = True, **params: object) -> BridgeRequest:
    """A request."""
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"name": "add", **params}})
    return BridgeRequest(line.encode(), jsonrpc.read(line.encode()), modern=modern)


def test_frames_pass_as_they_are() -> None:
    """P6: the answer ends it."""
    one = pending()
    assert one.pass_on([PROGRESS]) == [PROGRESS] and not one.is_over
    assert one.pass_on([RESULT]) == [RESULT] and one.is_over
    assert one.call == "c1"


def test_after_a_cancel_only_withdrawals_pass() -> None:
    """X1: a question of a cancelled call needs no answer, and its client must know."""
    one = pending()
    one.is_cancelled = True
    assert one.pass_on([PROGRESS, WITHDRAWN, RESULT, b"garbage"]) == [WITHDRAWN]


def test_a_refusal_gets_the_id_that_its_client_waits_for() -> None:
    """E4: a gateway that refused a request unread did not know it."""
    [frame] = pending().pass_on([b'{"id":null,"error":{"code":-32600,"message":"no"},"jsonrpc":"2.0"}'])
    assert json.loads(frame) == {"jsonrpc": "2.0", "id": 1, "error": {"code": -32600, "message": "no"}}


@pytest.mark.parametrize("modern", [True, False])
def test_a_lost_call_is_a_result_that_says_so(modern: bool) -> None:
    """E2, H4: text for the model, fields for programs; which call it was, if that is known."""
    one = pending(modern=modern)
    one.pass_on([PROGRESS])
    told: Message = json.loads(one.lost())["result"]
    assert told["isError"] and "afoot log c1" in told["content"][0]["text"]
    assert told["_meta"]["dev.afoot/error"] == {
        "category": "unavailable", "code": "lost", "retryable": False, "side_effects": "possible",
    }  # fmt: skip
    assert ("resultType" in told) == modern


def test_a_call_that_reached_nobody_did_nothing() -> None:
    """E2: it may be tried again."""
    told: Message = json.loads(pending().unreached("no gateway runs"))["result"]
    error = told["_meta"]["dev.afoot/error"]
    assert (error["code"], error["retryable"], error["side_effects"]) == ("unavailable", True, "none")
    assert "no gateway runs" in told["content"][0]["text"] and "dev.afoot/call" not in told["_meta"]


def test_other_requests_get_errors() -> None:
    """H4: with a code that clients take for a closed connection."""
    one = pending("prompts/get")
    for answer in (one.lost(), one.unreached("none")):
        assert json.loads(answer)["error"]["code"] == -32000
    assert json.loads(one.failed(500))["error"]["code"] == -32603


@pytest.mark.parametrize(
    ("method", "params", "is_safe"),
    [
        ("tools/list", {}, True),
        ("tools/call", {}, False),
        ("tools/call", {"requestState": "s"}, True),
        ("tools/call", {"requestState": 7}, False),
        ("prompts/get", {}, False),
    ],
)
def test_what_may_be_sent_twice(method: str, params: Message, is_safe: bool) -> None:
    """Q1 d: a retry of a round finds its call again; a call is never sent twice."""
    assert pending(method, **params).is_safe is is_safe
