"""Input schemas, and arguments checked by them."""

import dataclasses
from typing import Annotated, Any, Literal, Optional, TypedDict

import msgspec
import pytest
from msgspec import Raw
from pydantic import BaseModel, Field

from afoot.errors import ToolError
from afoot.providers.functions.context import Context
from afoot.providers.functions.signature import Signature, _bind_by_schema, parse_docstring


class Options(BaseModel):
    """A model."""

    depth: int = 1


@dataclasses.dataclass
class Place:
    """A dataclass."""

    x: int


class Extra(TypedDict):
    """A TypedDict of `typing`."""

    tag: str


def signature(function: Any, raw: dict[str, Any] | None = None) -> Signature:
    return Signature(function, parse_docstring(function.__doc__), raw)


def bind(function: Any, arguments: object, raw: dict[str, Any] | None = None) -> Any:
    args, named = signature(function, raw).bind(Raw(msgspec.json.encode(arguments)))
    return function(*args, **named)


def refusal(function: Any, arguments: object, raw: dict[str, Any] | None = None) -> str:
    with pytest.raises(ToolError) as caught:
        bind(function, arguments, raw)
    assert caught.value.category == "validation"
    return caught.value.message


def test_parameters_become_a_schema() -> None:
    """E4: types, defaults, descriptions and constraints; no titles."""

    def export(
        pages: int, mode: Literal["fast", "slow"] = "fast", limit: Annotated[int, Field(ge=1)] = 5
    ) -> None:
        """Export.

        Args:
            pages: how many
            limit: at most
        """

    assert signature(export).schema == {
        "type": "object",
        "properties": {
            "pages": {"type": "integer", "description": "how many"},
            "mode": {"type": "string", "enum": ["fast", "slow"], "default": "fast"},
            "limit": {"type": "integer", "description": "at most", "minimum": 1, "default": 5},
        },
        "required": ["pages"],
        "additionalProperties": False,
    }


def test_the_authors_field_wins_over_the_docstring() -> None:
    """E4: the nearest word counts; further keys pass through."""

    def export(
        region: Annotated[str, Field(description="mine", json_schema_extra={"x-mcp-header": "Region"})],
    ) -> None:
        """Export.

        Args:
            region: other
        """

    assert signature(export).schema["properties"]["region"] == {
        "type": "string",
        "description": "mine",
        "x-mcp-header": "Region",
    }


def test_models_dataclasses_and_typed_dicts_arrive_as_themselves() -> None:
    """E4: the function gets what its annotation says."""

    def take(options: Options, place: Place, extra: Extra, many: list[Extra] | None = None) -> Any:
        return options, place, extra, many

    given = {"options": {"depth": 2}, "place": {"x": 1}, "extra": {"tag": "t"}, "many": [{"tag": "u"}]}
    assert bind(take, given) == (Options(depth=2), Place(1), {"tag": "t"}, [{"tag": "u"}])


def test_every_field_that_does_not_fit_is_named() -> None:
    """E4: all of them in one text, without the values."""

    def export(pages: int, place: Place, name: str) -> None: ...

    text = refusal(export, {"pages": "secret", "place": {"x": "y"}})
    assert "arguments.pages: Input should be a valid integer" in text
    assert "arguments.place.x: Input should be a valid integer" in text
    assert "arguments.name: Field required" in text
    assert "secret" not in text


def test_an_unknown_argument_is_named_with_the_nearest() -> None:
    """E4: a typing mistake is found."""

    def export(pages: int = 1) -> None: ...

    assert refusal(export, {"pges": 1}) == "arguments.pges: unknown argument; did you mean pages?"


@pytest.mark.parametrize("bad", [[], "x", 5, None])
def test_arguments_must_be_an_object(bad: object) -> None:
    """E4: and the text says so."""

    def export(pages: int = 1) -> None: ...

    assert refusal(export, bad).startswith("arguments: ")


@pytest.mark.parametrize("bad", [b"{", b"\xff", b'{"pages":' + b"[" * 100_000 + b"]" * 100_000 + b"}"])
def test_broken_json_is_a_validation_error(bad: bytes) -> None:
    """E4: nothing else is raised."""

    def export(pages: int = 1) -> None: ...

    for raw in (None, {"type": "object"}):
        with pytest.raises(ToolError) as caught:
            signature(export, raw).bind(Raw(bad))
        assert caught.value.category == "validation"


def test_many_problems_are_not_all_listed() -> None:
    """E4: a text stays a text."""

    def export(pages: list[int]) -> None: ...

    assert refusal(export, {"pages": ["x"] * 1000}).endswith("and 990 more")


def test_no_arguments_at_all_are_an_empty_object() -> None:
    """E4: a caller may leave them out."""

    def export(pages: int = 3) -> int:
        return pages

    args, named = signature(export).bind(Raw())
    assert export(*args, **named) == 3


def _plain(ctx: Context) -> None: ...


def _optional(pages: int = 1, ctx: Optional[Context] = None) -> None: ...  # noqa: UP045


def _union(ctx: Context | None = None) -> None: ...


def _string(ctx: "Context | None" = None) -> None: ...


@pytest.mark.parametrize("function", [_plain, _optional, _union, _string])
def test_the_context_is_found_by_annotation_and_not_shown(function: Any) -> None:
    """P2: however it is spelled."""
    found = signature(function)
    assert found.context == "ctx"
    assert "ctx" not in found.schema["properties"]


def test_a_context_imported_only_for_the_type_checker_is_found() -> None:
    """P2: an annotation may be a string that the module cannot resolve."""
    names: dict[str, Any] = {}
    exec("from __future__ import annotations\ndef f(n: int, ctx: Context | None = None) -> str: ...", names)
    assert signature(names["f"]).context == "ctx"


def test_an_annotation_that_cannot_be_resolved_is_said() -> None:
    """E4: at loading, not at the first call."""
    names: dict[str, Any] = {}
    exec("from __future__ import annotations\ndef f(n: Nowhere) -> str: ...", names)
    with pytest.raises(TypeError, match="Nowhere"):
        signature(names["f"])


def test_odd_parameters_work() -> None:
    """E4: names that pydantic has, positional ones, keyword ones, and the rest."""

    def odd(first: int, /, schema: int, _hidden: int = 2, *, copy: str = "c", **rest: int) -> Any:
        return first, schema, _hidden, copy, rest

    given = {"first": 1, "schema": 2, "_hidden": 3, "copy": "d", "z": 9}
    assert bind(odd, given) == (1, 2, 3, "d", {"z": 9})
    assert set(signature(odd).schema["properties"]) == {"first", "schema", "_hidden", "copy"}


def test_an_alias_of_the_authors_own_is_the_name_on_the_wire() -> None:
    """E4: the function keeps its own name for it."""

    def export(page_count: Annotated[int, Field(alias="pageCount")]) -> int:
        return page_count

    assert bind(export, {"pageCount": 3}) == 3


def test_a_field_may_be_the_default() -> None:
    """E4: the older way to write it."""

    def export(pages: int = Field(default=4, ge=1, description="how many")) -> int:
        return pages

    assert bind(export, {}) == 4
    assert signature(export).schema["properties"]["pages"]["minimum"] == 1
    assert "arguments.pages" in refusal(export, {"pages": 0})


def test_what_cannot_be_offered_is_refused_at_once() -> None:
    """E4: star arguments, and types without JSON."""

    def star(*all: int) -> None: ...

    def strange(x: Strange) -> None: ...

    with pytest.raises(TypeError, match=r"\*all"):
        signature(star)
    with pytest.raises(TypeError, match="JSON"):
        signature(strange)


class Strange:
    """No type for JSON."""


RAW = {
    "type": "object",
    "properties": {"a": {"type": "integer"}},
    "required": ["a"],
    "additionalProperties": False,
}


def test_a_raw_schema_is_shown_and_checked_as_it_is() -> None:
    """E4: arguments are passed as they came: named, as the rest, or whole."""

    def named(a: Any) -> Any:
        return a

    def rest(**all: Any) -> Any:
        return all

    def whole(arguments: dict[str, Any]) -> Any:
        return arguments

    assert signature(whole, RAW).schema == RAW
    assert bind(named, {"a": 1}, RAW) == 1
    assert bind(rest, {"a": 1}, RAW) == bind(whole, {"a": 1}, RAW) == {"a": 1}
    assert "arguments.a: " in refusal(whole, {"a": "hush"}, RAW)
    assert "hush" not in refusal(whole, {"a": "hush"}, RAW)
    assert '"a" is a required property' in refusal(rest, {}, RAW)
    assert "unknown argument" in refusal(named, {"a": 1, "b": 2}, {"type": "object", "properties": {"a": {}}})


def test_a_raw_schema_that_is_none_is_refused_at_once() -> None:
    """E4: the author is told when the tool is loaded."""

    def whole(arguments: dict[str, Any]) -> Any: ...

    with pytest.raises(TypeError, match="no JSON schema"):
        signature(whole, {"type": "objekt"})


@pytest.mark.parametrize("depth", [1, 300, 900])
def test_arguments_that_do_not_fit_a_given_schema_are_refused_however_deep_they_are(depth: int) -> None:
    """E4, S8: the library does not describe a deep value."""
    bind = _bind_by_schema({"type": "object", "properties": {"a": {"type": "string"}}}, {})
    with pytest.raises(ToolError, match="arguments"):
        bind(Raw(b'{"a":' + b"[" * depth + b"]" * depth + b"}"))
