"""Output schemas and results."""

import collections.abc as abc
import dataclasses
import enum
from datetime import date
from typing import Annotated, Any, Dict, List, Literal, NotRequired, TypedDict  # noqa: UP035

import jsonschema_rs
import pytest
from msgspec import Raw
from pydantic import BaseModel, Field

from afoot.core.facts import Result
from afoot.errors import ToolError
from afoot.providers.content import Content, Partial, ToolResult
from afoot.providers.functions.results import ResultEncoder
from tests.providers.fake_run import decoded


class Page(BaseModel):
    """A page."""

    number: int
    name: str = Field(default="", alias="pageName")


class Node(BaseModel):
    """Recursive, so that its schema refers to itself."""

    children: list["Node"] = []


@dataclasses.dataclass
class Point:
    """A place."""

    x: int
    y: date


class Inner(TypedDict):
    """Nested."""

    a: int


class Outer(TypedDict):
    """From `typing`, which pydantic refuses on 3.11."""

    inner: list[Inner]
    more: NotRequired[str]


class Colour(enum.Enum):
    """Two."""

    RED = "red"
    BLUE = "blue"


@pytest.mark.parametrize(
    "annotation",
    [
        None,
        Any,
        object,
        Content,
        list[Content],
        Content | None,
        ToolResult,
        bytes,
    ],
    ids=str,
)
def test_what_is_for_reading_promises_nothing(annotation: object) -> None:
    """E3: nothing and content have no output schema."""
    assert ResultEncoder(annotation).schema is None


@pytest.mark.parametrize(
    ("annotation", "value", "structured"),
    [
        (dict[str, int], {"a": 1}, {"a": 1}),
        (int, 5, {"result": 5}),
        (bool, True, {"result": True}),
        (list[Page], [Page(number=1, pageName="x")], {"result": [{"number": 1, "pageName": "x"}]}),
        (Page, Page(number=1), {"number": 1, "pageName": ""}),
        (Page, {"number": 1, "name": "n"}, {"number": 1, "pageName": "n"}),
        (Page | None, None, {"result": None}),
        (Node, Node(children=[Node()]), {"children": [{"children": []}]}),
        (Point, Point(1, date(2026, 1, 2)), {"x": 1, "y": "2026-01-02"}),
        (Outer, {"inner": [{"a": 1}]}, {"inner": [{"a": 1}]}),
        (Literal["a", "b"], "a", {"result": "a"}),
        (Colour, Colour.RED, {"result": "red"}),
        (dict[str, int] | str, {"a": 1}, {"result": {"a": 1}}),
    ],
)
def test_a_value_fits_the_schema_that_was_promised(
    annotation: Any, value: object, structured: object
) -> None:
    """E3: schema and value are wrapped alike, and the schema's top is an object."""
    output = ResultEncoder(annotation)
    assert output.schema is not None and output.schema["type"] == "object"
    result = output.encode(value)
    assert decoded(result.structured) == structured
    jsonschema_rs.validator_for(output.schema).validate(decoded(result.structured))


@pytest.mark.parametrize(
    "annotation",
    [
        list,
        tuple,
        dict,
        list[Any],
        dict[str, Any],
        tuple[Any, ...],
        list[Any] | None,
        Annotated[list[Any], "x"],
        list[Annotated[Any, "x"]],
        abc.Sequence,
        abc.Mapping[str, object],
        List,  # noqa: UP006
        Dict[str, Any],  # noqa: UP006
        abc.Awaitable[list[Any]],
    ],
    ids=str,
)
def test_a_container_of_anything_promises_nothing(annotation: Any) -> None:
    """F7: content may be in it, and clients throw away a result that does not meet the schema."""
    output = ResultEncoder(annotation)
    assert output.schema is None
    image = Content.image(b"\x89PNG")
    assert decoded(output.encode([image]).content)[0]["type"] == "image"
    assert decoded(output.encode(image).content)[0]["type"] == "image"
    assert decoded(output.encode(["a", image]).structured) is None
    assert decoded(output.encode([1]).structured) == {"result": [1]}
    assert decoded(output.encode({"a": 1}).structured) == {"a": 1}


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (int, Content.image(b"")),
        (list[int], [Content.image(b"")]),
        (dict[str, int], ToolResult("only text")),
        (list[dict[str, Any]], ["a", Content.text("b")]),
        (Page, Result(Raw(b"[]"))),
    ],
    ids=["int", "list of int", "dict", "list of dict", "model"],
)
def test_content_in_place_of_a_promised_value_is_the_tools_fault(annotation: Any, value: object) -> None:
    """F7: every result meets the schema that was published, and the author is told what to change."""
    output = ResultEncoder(annotation)
    assert output.schema is not None
    with pytest.raises(
        ToolError, match="its annotation promises a value; annotate it with Content"
    ) as caught:
        output.encode(value)
    assert caught.value.code == "bad_result"


def test_values_without_an_annotation_are_structured_too() -> None:
    """E3: what has a structure shows it."""
    output = ResultEncoder()
    assert decoded(output.encode([1]).structured) == {"result": [1]}
    assert decoded(output.encode(Point(1, date(2026, 1, 2))).structured) == {"x": 1, "y": "2026-01-02"}
    assert decoded(output.encode({"a": 1}).content) == [{"type": "text", "text": '{"a":1}'}]


@pytest.mark.parametrize("text", ["hi", "größer", "a\ud800b", "", "line\n2"])
def test_text_has_a_structured_form_too(text: str) -> None:
    """F7: a function that promises `str` publishes a schema; hosts that read nothing else see it."""
    output = ResultEncoder(str)
    result = output.encode(text)
    assert output.schema is not None
    structured = decoded(result.structured)
    jsonschema_rs.validator_for(output.schema).validate(structured)
    assert structured == {"result": decoded(result.content)[0]["text"]}
    with pytest.raises(ToolError, match="does not fit its annotation"):
        output.encode(None)


def test_text_that_may_be_missing_is_null() -> None:
    """F7: and its content is empty."""
    output = ResultEncoder(str | None)
    assert output.schema is not None
    for value in ("hi", None):
        assert decoded(output.encode(value).structured) == {"result": value}


def test_text_and_nothing_have_no_structure() -> None:
    """E3: they are for reading."""
    assert decoded(ResultEncoder().encode("hi").content) == [{"type": "text", "text": "hi"}]
    assert decoded(ResultEncoder().encode("hi").structured) is None
    assert decoded(ResultEncoder().encode(None).content) == []


def test_a_result_that_does_not_fit_its_annotation_is_the_tools_fault() -> None:
    """E3: named by field, internal."""
    with pytest.raises(ToolError, match=r"result\.number: Input should be a valid integer") as caught:
        ResultEncoder(Page).encode({"number": "x"})
    assert caught.value.category == "internal"


def test_a_result_said_in_full_is_taken_as_it_is() -> None:
    """E3: content, structure and the error flag."""
    result = ResultEncoder().encode(
        ToolResult(content=["a", Content.text("b")], structured=[1], is_error=True)
    )
    assert [item["text"] for item in decoded(result.content)] == ["a", "b"]
    assert decoded(result.structured) == {"result": [1]}
    assert result.is_error
    assert decoded(ResultEncoder().encode(ToolResult(structured={"a": 1})).content) == [
        {"type": "text", "text": '{"a":1}'}
    ]
    assert decoded(ResultEncoder().encode(ToolResult("only")).content) == [{"type": "text", "text": "only"}]
    assert decoded(ResultEncoder().encode(ToolResult()).content) == []


def test_a_full_result_must_fit_a_promise_unless_it_is_an_error() -> None:
    """E3: what was promised holds for good results."""
    with pytest.raises(ToolError, match="does not fit"):
        ResultEncoder(Page).encode(ToolResult(structured={"number": "x"}))
    assert ResultEncoder(Page).encode(ToolResult("sorry", is_error=True)).is_error


@pytest.mark.parametrize(
    ("annotation", "has_schema"),
    [
        (abc.AsyncIterator[Partial], False),
        (abc.AsyncIterator[Partial | str], False),
        (abc.AsyncGenerator[Partial | Page, None], True),
        (abc.Generator[Partial, None, Page], True),
        (abc.Iterator[Partial | Page], True),
    ],
    ids=str,
)
def test_a_generators_promise_is_its_one_value(annotation: object, has_schema: bool) -> None:
    """P11: partials are no part of the output schema."""
    assert (ResultEncoder(annotation, is_generator=True).schema is not None) is has_schema


def test_a_class_nobody_knows_promises_nothing() -> None:
    """E3: and fails clearly when it is returned."""

    class Strange:
        pass

    output = ResultEncoder(Strange)
    assert output.schema is None
    with pytest.raises(ToolError, match="Strange, which cannot be encoded"):
        output.encode(Strange())
