"""Forms of an approval through `afoot connect`, in both eras; and a host behind it that shows no forms."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.raw_client import Message, Pipe, call
from tests.e2e.transports.bridge_processes import ERAS, Hall, called, hall, said

Fields = dict[str, Any]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Hall]:
    """Where every call needs an approval, and one waits for an operator who was not seen."""
    with hall(tmp_path, {"approval": "ask", "unanswerable": "wait"}) as found:
        yield found


def accepted(**content: str) -> Message:
    """A form that was filled in."""
    return {"action": "accept", "content": content}


def answer_forms(bridge: Pipe, era: str, answers: list[tuple[str, Message]]) -> tuple[list[Fields], Message]:
    """The fields of each form of a call, and its result, after these answers to keys."""
    forms: list[Fields] = []
    bridge.put(called(era, "nap", {}))
    for number, (key, given) in enumerate(answers, 2):
        asked = bridge.take()
        if era == "handshake":
            forms.append(asked["params"]["requestedSchema"]["properties"])
            bridge.put({"jsonrpc": "2.0", "id": asked["id"], "result": given})
        else:
            forms.append(asked["result"]["inputRequests"][key]["params"]["requestedSchema"]["properties"])
            state = asked["result"]["requestState"]
            bridge.put(call("nap", {}, number, requestState=state, inputResponses={key: given}))
    return forms, bridge.take()


@pytest.mark.parametrize("era", ERAS)
def test_through_a_bridge_a_reject_is_followed_by_a_second_form(place: Hall, era: str) -> None:
    """A8, A2: one field each; the words reach the model."""
    given = [
        ("afoot_approval", accepted(decision="reject")),
        ("afoot_instead", accepted(instead="read a book")),
    ]
    forms, answer = answer_forms(place.bridge(era), era, given)
    assert [list(one) for one in forms] == [["decision"], ["instead"]]
    assert "The user says what to do instead: read a book" in said(answer) and answer["result"]["isError"]
    assert "structuredContent" not in answer["result"]  # the tool's output schema allows no other text


def test_through_a_bridge_a_model_is_told_at_once_where_a_person_can_answer(place: Hall) -> None:
    """Q5, H5: its host has a limit and shows no forms."""
    bridge = place.bridge()
    meta: dict[str, Any] = {"capabilities": {}, "dev.afoot/budget": {"wait_s": 60}}
    result = bridge.ask(call("nap", {}, **meta))["result"]
    console = place.address["console"]
    name = result["structuredContent"]["afoot_call"]
    assert f"in the console at {console} or with `afoot answer {name[-8:]}`" in result["content"][0]["text"]
