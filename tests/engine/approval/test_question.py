"""What a reviewer is display_arguments, may answer, and what the model is told."""

from typing import Any

import pytest
from jsonschema_rs import validator_for
from msgspec import Raw, json
from msgspec.structs import replace

from afoot.core.facts import Answer, Question
from afoot.core.ports import Tool
from afoot.engine.approval import question as approval
from afoot.engine.approval.question import (
    Decision,
    approval_question,
    decision_of,
    display_arguments,
    operator_form,
    refusal_error,
    without_haste,
)
from afoot.errors import ToolError

TOOL = Tool("delete", "files", Raw(b"{}"), digest="d1", destructive=True)


def says(action: str = "accept", **content: Any) -> Answer:
    """An answer with this content."""
    return Answer(action, Raw(json.encode({key.rstrip("_"): value for key, value in content.items()})), "x")


@pytest.mark.parametrize(
    ("answer", "decision"),
    [
        (says(decision="run"), Decision("run")),
        (says(decision="skip"), Decision("skip")),
        (says(decision="reject", instead="ask me first"), Decision("reject", "ask me first")),
        (says(decision="always"), Decision("always")),
        (
            says(decision="always", scope="arguments", for_="ever"),
            Decision("always", "", "arguments", "ever"),
        ),
        (says(decision="always", scope="server", for_=60), Decision("always", "", "server", 60.0)),
        (says(decision="always", for_="60"), Decision("always", "", "tool", 60.0)),
        (Answer("decline"), Decision("skip")),
        (says("decline", decision="run"), Decision("skip")),
        (Answer("cancel"), Decision("skip")),
    ],
)
def test_what_an_answer_decides(answer: Answer, decision: Decision) -> None:
    """A2: run, skip, reject and say what instead, always; declining skips."""
    assert decision_of(answer) == decision


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ({}, "decision"),
        ({"instead": "x"}, "decision"),
        ({"decision": "perhaps"}, "decision"),
        ({"decision": 1}, "decision"),
        ({"decision": "always", "scope": "world"}, "scope"),
        ({"decision": "always", "for": "a while"}, "for"),
        ({"decision": "always", "for": 0}, "for"),
        ({"decision": "always", "for": -5}, "for"),
        ({"decision": "always", "for": "-5"}, "for"),
        ({"decision": "always", "for": "nan"}, "for"),
        ({"decision": "always", "for": "inf"}, "for"),
        ({"decision": "always", "for": 1e10}, "for"),
        ({"decision": "reject", "instead": 7}, "instead"),
        ({"decision": "run", "nonsense": 1}, "nonsense"),
        ([], ""),
    ],
)
def test_an_answer_that_does_not_fit_names_the_field(content: object, field: str) -> None:
    """A2, Q2: and decides nothing."""
    with pytest.raises(ToolError, match=rf"answer\.content.*{field}") as caught:
        decision_of(Answer("accept", Raw(json.encode(content)), "x"))
    assert caught.value.category == "validation"


def test_what_the_model_is_told_of_a_no() -> None:
    """A2: the reviewer's text goes to the model."""
    told = refusal_error(TOOL, Decision("reject", " use the bin instead "))
    assert told.message.endswith("instead: use the bin instead") and told.code == "rejected"
    assert refusal_error(TOOL, Decision("reject")).code == "rejected"
    assert refusal_error(TOOL, Decision("skip")).code == "skipped"
    assert {refusal_error(TOOL, Decision("skip")).category, told.category} == {"refused"}


def test_the_question_shows_tool_server_and_arguments() -> None:
    """A2: on one line, with every key, and why it is asked."""
    asked = approval_question(
        TOOL, Raw(b'{\n  "path": "/tmp",\n "path": "/"}'), "operator", "session:1", "it says so"
    )
    assert asked.message == 'Run files/delete({"path": "/tmp", "path": "/"})?'
    assert (asked.kind, asked.to, approval.why_asked(asked)) == ("approval", "operator", "it says so")


def test_nothing_in_arguments_steers_who_shows_them() -> None:
    """A2: control, invisible and direction characters are written out."""
    text = display_arguments(Raw('{"a": "\x9b2J\u202egnp.exe\u2028\u200b", "b": "\\u001b[2J"}'.encode()))
    assert text.isprintable()
    assert text == '{"a": "\\u009b2J\\u202egnp.exe\\u2028\\u200b", "b": "\\u001b[2J"}'


def test_long_arguments_are_cut_and_say_so() -> None:
    """A2: nobody approves what is not seen without knowing."""
    text = display_arguments(Raw(json.encode({"text": "x" * 10_000})))
    assert len(text) < 4100 and text.endswith("(10012 characters in all)")


def test_the_forms_take_what_is_decided_and_every_era_knows_them() -> None:
    """A2, A8, Q2: only strings with names, no nesting; the caller's has one field. No decision is preset."""
    asked = approval_question(TOOL, Raw(b"{}"), "", "local", "why")
    form, whole = json.decode(asked.body), json.decode(operator_form())
    assert set(form["properties"]) == {"decision"}
    assert set(whole["properties"]) == {"decision", "instead", "scope", "for"}
    assert (
        "default" not in form["properties"]["decision"] and "default" not in whole["properties"]["decision"]
    )
    for schema in (form, whole):
        assert set(schema) == {"type", "properties", "required"}
        for one in schema["properties"].values():
            assert one["type"] == "string" and len(one.get("enum", ())) == len(one.get("enumNames", ()))
    fits = validator_for(whole).is_valid
    assert fits({"decision": "always", "scope": "server", "for": "ever"}) and not fits(
        {"decision": "perhaps"}
    )


@pytest.mark.parametrize(
    ("kind", "given", "open_s", "action"),
    [
        ("approval", Answer("decline", by="session:1"), 0.001, "cancel"),
        ("approval", Answer("decline", by="token:1"), 0.049, "cancel"),
        ("approval", Answer("decline", by="session:1"), 0.05, "decline"),
        ("form", Answer("decline", by="session:1"), 0.001, "decline"),
        ("approval", replace(says(decision="run"), by="local"), 0.001, "cancel"),
        ("approval", replace(says(decision="run"), by="session:1"), 0.049, "cancel"),
        ("approval", replace(says(decision="always"), by="stdio"), 0.001, "cancel"),
        ("approval", replace(says(decision="run"), by="local"), 0.05, "accept"),
        ("approval", replace(says(decision="run"), by="token:ada"), 0.001, "accept"),
        ("approval", replace(says(decision="reject"), by="local"), 0.001, "accept"),
        ("approval", replace(says(decision="perhaps"), by="local"), 0.001, "accept"),
        ("form", replace(says(decision="run"), by="local"), 0.001, "accept"),
    ],
)
def test_an_answer_that_no_person_can_have_given_is_none(
    kind: str, given: Answer, open_s: float, action: str
) -> None:
    """A8, S6: within 50 ms the host has declined, or a caller without a name said yes to its own call."""
    taken = without_haste(Question("c.1", "k", kind), given, open_s)
    assert (taken.action, taken.surface) == (action, "host" if action != given.action else "")
    assert action == "accept" or not taken.content


def test_always_is_offered_to_callers_who_can_be_told_apart() -> None:
    """A2, S3, S6: a yes of one anonymous caller is no yes of the others."""

    def offered(caller: str) -> dict[str, str]:
        form = json.decode(approval_question(TOOL, Raw(b"{}"), "", caller, "why").body)
        field = form["properties"]["decision"]
        return dict(zip(field["enum"], field["enumNames"], strict=True))

    assert "this connection" in offered("session:1")["always"]
    assert list(offered("local")) == ["run", "skip", "reject"]
