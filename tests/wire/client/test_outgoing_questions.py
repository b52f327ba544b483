"""What a server asks, and what its errors mean."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import Raw, json

from afoot.core.facts import Answer, Question
from afoot.wire.client import incoming, outgoing
from afoot.wire.client.incoming import InputRequest
from afoot.wire.jsonrpc import Fault


def raw(value: Any) -> Raw:
    """A value, encoded."""
    return Raw(json.encode(value))


@pytest.mark.parametrize(
    ("wish", "kind", "body"),
    [
        (
            InputRequest("elicitation/create", raw({"message": "m", "requestedSchema": {"a": 1}})),
            "form",
            {"a": 1},
        ),
        (
            InputRequest("elicitation/create", raw({"message": "m", "mode": "url", "url": "https://x"})),
            "url",
            "https://x",
        ),
        (InputRequest("sampling/createMessage", raw({"maxTokens": 1})), "sample", {"maxTokens": 1}),
        (InputRequest("roots/list"), "roots", None),
    ],
)
def test_what_a_server_asks_becomes_a_question(wish: InputRequest, kind: str, body: object) -> None:
    """Q3: forms, pages, samples and roots."""
    asked = outgoing.read_question(wish, "k", "operator")
    assert (asked.id, asked.key, asked.kind, asked.to) == ("", "k", kind, "operator")
    assert (json.decode(asked.body) if asked.body else None) == body


def test_a_question_of_another_kind_is_refused() -> None:
    """Q3: nobody is asked what nobody knows."""
    with pytest.raises(Fault, match="unknown method"):
        outgoing.read_question(InputRequest("magic/do"), "k")
    with pytest.raises(Fault, match=r"params\.message"):
        outgoing.read_question(InputRequest("elicitation/create", raw({"message": 5})), "k")


@pytest.mark.parametrize(
    ("kind", "answer", "result"),
    [
        ("form", Answer("accept", raw({"a": 1})), {"action": "accept", "content": {"a": 1}}),
        ("form", Answer("accept"), {"action": "accept", "content": {}}),
        ("form", Answer("decline"), {"action": "decline"}),
        ("form", Answer("cancel"), {"action": "cancel"}),
        ("url", Answer("accept", raw({"a": 1})), {"action": "accept"}),
        ("sample", Answer("accept", raw({"role": "assistant"})), {"role": "assistant"}),
        ("roots", Answer("accept", raw([{"uri": "a"}])), {"roots": [{"uri": "a"}]}),
        ("roots", Answer("accept", raw({"roots": []})), {"roots": []}),
        ("sample", Answer("decline"), -1),
        ("roots", Answer("cancel"), -32601),
    ],
)
def test_an_answer_goes_back_in_the_form_its_question_wants(
    kind: str, answer: Answer, result: object
) -> None:
    """Q2: accept, decline and cancel; where there is no such word, an error says no."""
    try:
        given = outgoing.answer_result(Question("", "k", kind), answer)
        assert json.decode(json.encode(given)) == result
    except Fault as fault:
        assert fault.code == result


@pytest.mark.parametrize(
    ("code", "category"),
    [
        (-32602, "validation"),
        (-32601, "not_found"),
        (-32603, "internal"),
        (5, "internal"),
        (-32800, "cancelled"),
    ],
)
def test_an_error_of_the_protocol_has_a_category(code: int, category: str) -> None:
    """E1: and names the server."""
    error = outgoing.as_tool_error(Fault(code, "no"), "files")
    assert (error.category, error.code, error.message) == (category, str(code), "server files: no")


def test_an_error_of_an_afoot_behind_us_keeps_its_words() -> None:
    """E1: category, code and when to try again; only on a result that is an error."""
    meta = {
        "dev.afoot/error": {"category": "rate_limit", "code": "slow", "retryable": True, "retry_after_s": 4}
    }
    result = {
        "content": [{"type": "text", "text": "too fast"}, {"type": "image"}],
        "isError": True,
        "_meta": meta,
    }
    error = outgoing.reported_tool_error(incoming.read_result(raw(result)))
    assert error is not None
    found = (error.message, error.category, error.code, error.retryable, error.retry_after)
    assert found == ("too fast", "rate_limit", "slow", True, 4)
    assert outgoing.reported_tool_error(incoming.read_result(raw({**result, "isError": False}))) is None


def deep(parts: str, frames: int) -> Raw:
    """Params so deep that they can be read from here, and not from so many frames further down."""
    depth = 1
    with pytest.raises(RecursionError):
        while True:
            json.decode(parts.replace("…", "[" * depth + "]" * depth))
            depth += 1
    depth -= frames // 2
    return Raw(parts.replace("…", "[" * depth + "]" * depth).encode())


def from_deeper(act: Callable[[], object], frames: int) -> object:
    """Call a function from so many frames further down."""
    return act() if not frames else from_deeper(act, frames - 1)


def test_a_question_that_is_nested_too_deep_is_refused() -> None:
    """S5: a message that was read can be too deep for the stack on which its parts are read."""
    wish = InputRequest("elicitation/create", deep('{"message":"m","z":…}', 40))
    with pytest.raises(Fault, match="nested too deep"):
        from_deeper(lambda: outgoing.read_question(wish, "k"), 40)


def test_content_that_is_nested_too_deep_has_no_text() -> None:
    """S5: the content itself is passed on as it came."""
    content = deep('[{"type":"text","text":"a","z":…}]', 40)
    outcome = incoming.ReceivedResult(
        content, meta=incoming.ReceivedResultMeta(incoming.ReceivedErrorMeta(message="m"))
    )
    assert from_deeper(lambda: outgoing.content_text(content), 40) == ""
    assert from_deeper(lambda: outgoing.attached_partials(outcome), 40) == []
