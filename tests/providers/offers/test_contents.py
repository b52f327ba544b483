"""Values of functions as the contents of a resource, or as the messages of a prompt."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from afoot.core.facts import Result
from afoot.errors import ToolError
from afoot.providers.content import Content
from afoot.providers.offers.contents import Message, encode_contents, encode_messages

URI = "x://y"


@dataclass
class Place:
    """A value with fields."""

    city: str


def contents(value: Any, mime_type: str | None = None) -> list[dict[str, Any]]:
    """What the resource has in it."""
    return [one["resource"] for one in json.loads(bytes(encode_contents(value, URI, mime_type).content))]


@pytest.mark.parametrize(
    ("value", "mime", "body"),
    [
        ("hé", "text/plain", {"text": "hé"}),
        (None, "text/plain", {"text": ""}),
        (b"\x00\xff", "application/octet-stream", {"blob": "AP8="}),
        (bytearray(b"a"), "application/octet-stream", {"blob": "YQ=="}),
        ({"a": 1}, "application/json", {"text": '{"a":1}'}),
        ([1, "b"], "application/json", {"text": '[1,"b"]'}),
        (Place("Bern"), "application/json", {"text": '{"city":"Bern"}'}),
        (Content.text("t"), "text/plain", {"text": "t"}),
        (Content.image(b"a", "image/webp"), "image/webp", {"blob": "YQ=="}),
    ],
)
def test_each_kind_of_value_has_its_type(value: Any, mime: str, body: dict[str, Any]) -> None:
    """F3: text, bytes, content and JSON; the author's own type counts, where there is one."""
    assert contents(value) == [{"uri": URI, "mimeType": mime, **body}]
    if not (isinstance(value, Content) and value.kind == "image"):
        assert contents(value, "text/x")[0]["mimeType"] == "text/x"


def test_a_list_with_content_in_it_is_several_contents() -> None:
    """F3: each has a URI, its own or that of the resource."""
    found = contents([Content.resource("x://y/1", text="one", mime="text/a"), "two", b"3"])
    assert [one["uri"] for one in found] == ["x://y/1", URI, URI]
    assert found[0] == {"uri": "x://y/1", "mimeType": "text/a", "text": "one"}


@pytest.mark.parametrize("value", [object(), Content.link("x://z", "z")])
def test_a_value_without_a_form_is_an_error_of_its_function(value: Any) -> None:
    """F3, E3: a link is no content of a resource, and an object is no JSON."""
    with pytest.raises(ToolError) as caught:
        encode_contents(value, URI, None)
    assert caught.value.category == "internal"


def messages(value: Any) -> list[tuple[str, Any]]:
    """The role and the content of each message."""
    result: Result = encode_messages(value, "")
    return [(one["role"], one["content"]) for one in json.loads(bytes(result.structured))["messages"]]


def text(words: str) -> dict[str, str]:
    """A text block."""
    return {"type": "text", "text": words}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("hi", [("user", text("hi"))]),
        (Message("hi", "assistant"), [("assistant", text("hi"))]),
        ({"role": "assistant", "content": "hi"}, [("assistant", text("hi"))]),
        (["a", {"role": "user", "content": text("b")}], [("user", text("a")), ("user", text("b"))]),
        (
            Content.image(b"a", "image/png"),
            [("user", {"type": "image", "data": "YQ==", "mimeType": "image/png"})],
        ),
        ([], []),
    ],
)
def test_each_kind_of_value_is_a_message(value: Any, expected: list[tuple[str, Any]]) -> None:
    """F3: text is said by the user, unless the author says who says it."""
    assert messages(value) == expected


@pytest.mark.parametrize("value", [None, 7, {"role": "system", "content": "x"}, {"a": 1}, ["a", None]])
def test_a_value_that_is_no_message_says_what_to_return(value: Any) -> None:
    """F3, E3: the error names what is accepted."""
    with pytest.raises(ToolError, match="afoot.Message"):
        encode_messages(value, "")


def test_the_description_is_part_of_the_answer_and_the_blocks_are_shown() -> None:
    """F3: the structured form is what MCP answers; the content is what the history shows."""
    result = encode_messages("hi", "Greets.")
    assert json.loads(bytes(result.structured))["description"] == "Greets."
    assert json.loads(bytes(result.content)) == [text("hi")]
