"""Forms and replies."""

import dataclasses
import enum
from typing import Any, Literal, TypedDict

import pytest
from msgspec import Raw
from pydantic import BaseModel, Field

from afoot import Context, tool
from afoot.core.facts import Answer
from afoot.errors import ToolError
from afoot.providers.functions.context import PageVisit, QuestionReply, answer_roots, answer_value, form_for
from afoot.testing import try_tool
from tests.providers.fake_run import accept, decoded


class Size(enum.Enum):
    """Two."""

    SMALL = "small"
    LARGE = "large"


class Order(BaseModel):
    """As a form."""

    name: str = Field(description="who", max_length=5)
    size: Size = Size.SMALL
    note: str | None = None
    fast: Literal["yes"] = "yes"


@dataclasses.dataclass
class Pair:
    """Two numbers."""

    a: int
    b: float = 1.0


class Tag(TypedDict):
    """One text."""

    tag: str


class Deep(BaseModel):
    """No form can show it."""

    pair: Pair


def test_a_model_becomes_a_flat_form() -> None:
    """Q2: only plain fields, nothing referred to, nothing nullable."""
    assert decoded(form_for(Order).body) == {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "who", "maxLength": 5},
            "size": {
                "type": "string",
                "title": "Size",
                "description": "Two.",
                "enum": ["small", "large"],
                "default": "small",
            },
            "note": {"type": "string"},
            "fast": {"type": "string", "enum": ["yes"], "default": "yes"},
        },
        "required": ["name"],
    }


@pytest.mark.parametrize(
    ("schema", "answer", "content"),
    [
        (Order, {"name": "a", "size": "large"}, Order(name="a", size=Size.LARGE)),
        (Pair, {"a": 1}, Pair(1)),
        (Tag, {"tag": "t"}, {"tag": "t"}),
        (bool, {"value": True}, True),
        (Literal["x", "y"], {"value": "y"}, "y"),
        ({"type": "object", "properties": {"z": {}}}, {"z": 1}, {"z": 1}),
        (None, {}, {}),
    ],
    ids=str,
)
def test_an_answer_comes_back_as_what_was_asked_for(schema: Any, answer: object, content: object) -> None:
    """Q2: validated into the type."""
    reply = form_for(schema).read(accept(answer))
    assert reply
    assert (reply.action, reply.content) == ("accept", content)


def test_only_acceptance_is_true() -> None:
    """Q2: decline and cancel have no content."""
    for action in ("decline", "cancel"):
        reply = form_for(bool).read(Answer(action))
        assert not reply
        assert (reply.action, reply.content) == (action, None)


def test_an_answer_that_does_not_fit_names_the_field() -> None:
    """Q2, E4: the type may know more than its schema."""
    with pytest.raises(ToolError, match=r"answer\.name: String should have at most 5"):
        form_for(Order).read(accept({"name": "much too long"}))


def test_a_nested_form_is_refused_at_once() -> None:
    """Q2: the author is told which field."""
    with pytest.raises(TypeError, match="pair"):
        form_for(Deep)


def test_a_person_is_asked_to_visit_a_page() -> None:
    """Q2: a login or a payment is made there, and neither the tool nor a model sees it."""

    @tool
    async def pay(ctx: Context) -> str:
        """Pays."""
        reply = await ctx.ask("Pay here", url="https://pay.example/1?a=b")
        assert reply.content is None
        return f"{reply.action} {bool(reply)}"

    accepted = try_tool(pay, answers={"q1": {}})
    [asked] = accepted.questions
    assert (asked.kind, asked.message, decoded(asked.body)) == (
        "url",
        "Pay here",
        "https://pay.example/1?a=b",
    )
    assert accepted.result == "accept True"
    assert try_tool(pay, answers={"q1": "decline"}).result == "decline False"


@pytest.mark.parametrize("url", ["javascript:alert(1)", "file:///etc/passwd", "https://a\u202eb", ""])
def test_no_other_address_is_shown_to_a_person(url: str) -> None:
    """Q2: the author is told, and nobody is asked."""
    with pytest.raises(ValueError, match="http"):
        PageVisit(url)


def test_samples_and_roots_are_values_or_refused() -> None:
    """Q1: kinds of their own."""
    assert answer_value(accept({"model": "m"})) == {"model": "m"}
    assert answer_roots(accept({"roots": [{"uri": "file:///"}]})) == answer_roots(
        accept([{"uri": "file:///"}])
    )
    assert answer_roots(Answer("accept", Raw())) == []
    with pytest.raises(ToolError) as caught:
        answer_value(Answer("decline"))
    assert caught.value.category == "refused"


async def test_a_reply_that_was_not_awaited_says_what_to_write() -> None:
    """Q1: the commonest mistake, explained."""

    async def later() -> QuestionReply:
        return QuestionReply("accept", 1)

    reply = QuestionReply.later(later())
    with pytest.raises(RuntimeError, match="await"):
        bool(reply)
    assert (await reply).content == 1
    assert (await reply).action == "accept"
