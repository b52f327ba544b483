"""Questions over the operator's API: listed, answered once, and gone with their call."""

from typing import Any
from uuid import uuid4

from tests.serve.api_client import Api


def ask(api: Api, tool: str = "ask_name") -> tuple[str, dict[str, Any]]:
    """A call that has asked."""
    call = api.start(tool, tag=f"mark-{uuid4().hex}")
    return call, api.asked(call)


def test_a_question_is_listed_answered_and_gone(api: Api) -> None:
    """Q4: open questions are listed, answered from anywhere, and removed when answered."""
    call, question = ask(api)
    assert question["message"] == "What is your name?"
    assert question["schema"]["required"] == ["name"]
    waiting = api.call(call)
    assert (waiting["waiting"], waiting["questions"][0]["id"]) == ("person", question["id"])
    answer = api.post(f"/api/questions/{question['id']}/answer", {"content": {"name": "Ann"}})
    assert answer.status == 200
    shown = api.ended(call)
    assert shown["result"]["structured"] == {"action": "accept", "content": {"name": "Ann"}}
    answer = shown["settled"][0]["answer"]
    assert answer.pop("at") >= shown["opened"]
    who = {"by": "operator", "surface": "api", "who": None}
    assert answer == {"action": "accept", "content": {"name": "Ann"}, **who}
    assert api.question(call) is None


def test_an_answer_that_does_not_fit_names_the_fields_and_leaves_the_question_open(api: Api) -> None:
    """Q2, Q4: 422 with the fields."""
    call, question = ask(api)
    place = f"/api/questions/{question['id']}/answer"
    answer = api.post(place, {"content": {"name": 3}})
    assert (answer.status, answer.error["category"]) == (422, "validation")
    assert [one["field"] for one in answer.error["fields"]] == ["name"]
    assert "name" in api.post(place, {}).error["message"]
    assert api.post(place, {"action": "maybe"}).status == 422
    assert api.question(call) is not None
    assert api.post(place, {"action": "decline"}).status == 200


def test_a_second_answer_is_refused_and_names_the_first(api: Api) -> None:
    """Q4: while the call runs and after its end, 409 says who was first."""
    call, question = ask(api, "ask_then_linger")
    place = f"/api/questions/{question['id']}/answer"
    assert api.post(place, {"content": {"name": "Ann"}}).status == 200
    second = api.post(place, {"content": {"name": "Bob"}})
    assert second.status == 409 and "already answered: accept, by operator" in second.error["message"]
    api.post(f"/api/calls/{call}/cancel", {})
    api.ended(call)
    third = api.post(place, {"content": {"name": "Bob"}})
    assert third.status == 409 and "already answered" in third.error["message"]


def test_a_question_is_removed_when_its_call_ends(api: Api) -> None:
    """Q4: nothing is left to answer."""
    call, question = ask(api)
    api.post(f"/api/calls/{call}/cancel", {"reason": "never mind"})
    api.ended(call)
    assert api.question(call) is None
    late = api.post(f"/api/questions/{question['id']}/answer", {"content": {"name": "Ann"}})
    assert late.status == 409 and "cancelled" in late.error["message"]
    unknown = api.post(f"/api/questions/{call}.7/answer", {})
    assert unknown.status == 404 and question["id"] in unknown.error["nearest"]
    assert api.post("/api/questions/nobody.1/answer", {}).status == 404


def test_an_answer_that_cannot_be_read_is_refused(api: Api) -> None:
    """Q4, S8: nested too deep, or a number out of range; found by the fuzzer's rule."""
    for content in (b"[" * 900 + b"]" * 900, b"1e999"):
        call, question = ask(api)
        body = b'{"content":{"name":' + content + b"}}"
        answer = api.send(
            "POST", f"/api/questions/{question['id']}/answer", body, {"content-type": "application/json"}
        )
        assert answer.status in (400, 422), answer.status
        api.post(f"/api/calls/{call}/cancel", {})
