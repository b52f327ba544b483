"""Questions of several sessions to one client: ids that never meet, answers that find their own."""

import json
from typing import Any

from afoot.bridge.relay import ClientQuestions
from afoot.wire import jsonrpc

ASK = b'{"id":"afoot-1","method":"elicitation/create","params":{"message":"?"},"jsonrpc":"2.0"}'
WITHDRAW = (
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"afoot-1","reason":"r"}}'
)
PROGRESS = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{}}'


def asked(questions: ClientQuestions, session: str, request: int = 1) -> str:
    """Ask in a session; the id that the client sees."""
    [frame] = questions.show([ASK], session, request)
    shown: dict[str, Any] = json.loads(frame)
    assert (shown["method"], shown["params"]) == ("elicitation/create", {"message": "?"})
    return str(shown["id"])


def answer(id: str, **body: object) -> jsonrpc.Envelope:
    """What the client says."""
    return jsonrpc.read(json.dumps({"jsonrpc": "2.0", "id": id, **body}).encode())


def test_an_answer_finds_the_question_of_its_own_session() -> None:
    """Q1, H4: two gateways ask under one id, and the client can tell them apart."""
    questions = ClientQuestions()
    old, new = asked(questions, "s1"), asked(questions, "s2")
    assert old != new
    assert questions.answered(answer(old, result={"action": "accept"}), "s2") is None
    told = questions.answered(answer(new, result={"action": "decline"}), "s2")
    assert told is not None and json.loads(told)["id"] == "afoot-1"
    assert json.loads(told)["result"] == {"action": "decline"}
    assert questions.answered(answer(new, result={}), "s2") is None  # once


def test_an_error_is_an_answer_too() -> None:
    """Q2: the gateway knows what it means."""
    questions = ClientQuestions()
    told = questions.answered(answer(asked(questions, "s"), error={"code": 1, "message": "no"}), "s")
    assert told is not None and json.loads(told)["error"]["message"] == "no"


def test_a_withdrawal_names_what_the_client_was_asked() -> None:
    """A5: under the client's id; what is no question passes as it is."""
    questions = ClientQuestions()
    name = asked(questions, "s")
    frames = questions.show([PROGRESS, WITHDRAW], "s", 1)
    assert frames[0] == PROGRESS
    assert json.loads(frames[1])["params"] == {"requestId": name, "reason": "r"}
    assert questions.lost(1) == []


def test_the_questions_of_a_lost_request_are_withdrawn() -> None:
    """H4, A5: nobody waits for their answers any more, and one that comes meets no other question."""
    questions = ClientQuestions()
    name, other = asked(questions, "s", 1), asked(questions, "s", 2)
    [frame] = questions.lost(1)
    assert json.loads(frame)["params"]["requestId"] == name
    assert questions.answered(answer(name, result={}), "s") is None
    assert questions.answered(answer(other, result={}), "s") is not None
