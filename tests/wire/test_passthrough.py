"""What is passed on as it came, and what is not."""

from typing import Any

from msgspec import Raw, json

from afoot.core.facts import NOTHING, Answer, Logged, Question
from afoot.wire import passthrough, results
from afoot.wire.client import incoming, outgoing
from afoot.wire.client.incoming import InputRequest
from afoot.wire.results import Capabilities, ToolCall

META: dict[str, Any] = {
    "progressToken": 1,
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {},
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/serverInfo": {},
    "dev.afoot/call": "c",
    "dev.afoot/later": "c",
    "io.modelcontextprotocol/later": 2,
    "ui": {"resourceUri": "ui://a"},
    "traceparent": "00-x",
}


def raw(value: object) -> Raw:
    """Encoded."""
    return Raw(json.encode(value))


def decoded(more: Raw) -> Any:
    """What is in it."""
    return json.decode(more)


def test_only_keys_of_one_hop_are_replaced() -> None:
    """U8: a key of the protocol that is not known here may be one of an extension."""
    found = passthrough.unknown_fields(raw({"a": 1, "b": None, "_meta": META}), {"a"}, {"traceparent"})
    kept = {"io.modelcontextprotocol/later": 2, "ui": {"resourceUri": "ui://a"}}
    assert decoded(found) == {"b": None, "_meta": kept}


def test_a_message_without_anything_unknown_costs_nothing() -> None:
    """U8: the very object that encoders leave out."""
    for body in ({"a": 1}, {"a": 1, "_meta": {"progressToken": 1}}, [1], {"_meta": 3}, None):
        assert passthrough.unknown_fields(raw(body), {"a"}) is NOTHING
    assert passthrough.unknown_fields(Raw(), {"a"}) is NOTHING


def test_our_fields_count_where_both_have_one() -> None:
    """U8: a server cannot speak for afoot."""
    more = raw({"a": 1, "b": 2, "_meta": {"x": 1, "y": 2}})
    merged = json.decode(json.encode(passthrough.merge({"a": 0, "_meta": {"x": 0}}, more)))
    assert merged == {"a": 0, "b": 2, "_meta": {"x": 0, "y": 2}}


def test_progress_keeps_what_another_afoot_says_beside_unknown_keys() -> None:
    """U8, P7: both are read from one `_meta`."""
    meta: dict[str, Any] = {"dev.afoot/progress": {"data": [1]}, "dev.afoot/partial": [], "x": 1}
    told = incoming.read_progress(raw({"progressToken": 1, "progress": 2, "z": 0, "_meta": meta}))
    assert told is not None and told.meta is not None and told.meta.details is not None
    assert (bytes(told.meta.details.data), bytes(told.meta.partial)) == (b"[1]", b"[]")
    assert decoded(told.more) == {"z": 0, "_meta": {"x": 1}}
    plain = incoming.read_progress(raw({"progressToken": 1, "progress": 2, "_meta": {"": 1}}))
    assert plain is not None and decoded(plain.more) == {"_meta": {"": 1}}


def test_data_of_a_log_message_keeps_its_type() -> None:
    """U8: it is text in the history, and to the caller what the server sent."""
    said = incoming.read_log(raw({"level": "info", "data": {"a": [1]}}))
    assert said is not None and said.text == '{"a":[1]}'
    frame = json.decode(results.log_notification(Logged(0.0, said.text, "info", "s", said.more)))
    assert frame["params"] == {"level": "info", "logger": "s", "data": {"a": [1]}}
    plain = incoming.read_log(raw({"level": "info", "data": "x"}))
    assert plain is not None and plain.more is NOTHING


def test_a_model_is_asked_without_the_keys_of_the_hop_before() -> None:
    """U8, Q2: what a server wants of a model passes whole, but its token is its own."""
    wish = InputRequest("sampling/createMessage", raw({"maxTokens": 1, "z": 2, "_meta": META}))
    asked = outgoing.read_question(wish, "k")
    assert decoded(asked.body).keys() == {"maxTokens", "z", "_meta"}
    assert "progressToken" not in decoded(asked.body)["_meta"]
    roots = outgoing.read_question(InputRequest("roots/list", raw({"_meta": META})), "k")
    method, params = results.question_params(roots)
    assert (method, "ui" in decoded(roots.more)["_meta"]) == ("roots/list", True)
    assert params == passthrough.fields_of(roots.more)


def test_an_answer_keeps_what_is_not_known_of_it() -> None:
    """U8, Q2: also where it is a no."""
    asked = Question("", "k", "form")
    given = results.read_answer(asked, raw({"action": "decline", "why": "x", "_meta": {"a": 1}}), "caller")
    assert json.decode(json.encode(outgoing.answer_result(asked, given))) == {
        "action": "decline",
        "why": "x",
        "_meta": {"a": 1},
    }
    assert outgoing.answer_result(asked, Answer("cancel")) == {"action": "cancel"}


def test_extensions_are_passed_on_except_those_of_one_hop() -> None:
    """U8: they are declared in one order, so that the same set is the same connection."""
    can = Capabilities(extensions={"b": {}, results.TASKS_EXTENSION: {}, "a": {"x": 1}})
    call = ToolCall(1, "t", Raw(b"{}"), capabilities=can, params=raw({"name": "t", "_meta": {"q": 1}}))
    more = call.unknown_params()
    assert decoded(more)["_meta"]["q"] == 1
    assert bytes(passthrough.declared_extensions(more)) == b'{"a":{"x":1},"b":{}}'
    without = ToolCall(
        1, "t", Raw(b"{}"), capabilities=Capabilities(extensions={results.TASKS_EXTENSION: {}})
    )
    assert without.unknown_params() is NOTHING
    assert passthrough.declared_extensions(NOTHING) is NOTHING


def test_a_caller_that_logs_at_debug_asks_the_server_for_it() -> None:
    """U5: every other level is asked for anyway."""
    levels = [ToolCall(1, "t", Raw(b"{}"), level=level).unknown_params() for level in ("debug", "info", None)]
    assert [bool(one) for one in levels] == [True, False, False]


def test_tools_for_apps_alone_are_told_by_their_visibility() -> None:
    """U8: a definition that cannot be read is no such tool."""
    seen_by: list[object] = [["app"], ["model", "app"], [], None, "app"]
    found = [raw({"name": "t", "_meta": {"ui": {"visibility": one}}}) for one in seen_by]
    assert [results.is_for_apps_alone(one) for one in found] == [True, False, True, False, False]
    assert not results.is_for_apps_alone(raw({"name": "t"}))
