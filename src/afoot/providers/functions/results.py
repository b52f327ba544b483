"""`ResultEncoder` makes a function's output schema from its annotation, and results from its values.

A return annotation of `None`, `Any` or content gives no output schema, as such a result is for reading. Nor
does a container of anything (`list`, `dict[str, Any]`), as content may be in it, nor the text of a generator,
which may give partial results alone. All others do, `str` among them, and every result meets the schema (F7):
clients throw away a result that does not. A value that is no JSON object is wrapped as `{"result": value}`,
in the schema and in the result, because structured content had to be an object before MCP 2026-07-28.
"""

import collections.abc as abc
import types
from functools import reduce
from operator import or_
from typing import Annotated, Any, Final, Protocol, Union, get_args, get_origin

from msgspec import Raw
from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_core import PydanticSerializationError

from afoot.core.facts import Result
from afoot.core.large_json import encode_sized
from afoot.errors import ToolError
from afoot.providers.content import (
    UNSET,
    Content,
    Partial,
    ToolResult,
    content_list,
    content_of,
    is_content,
    json_of,
    unencodable,
    without_surrogates,
)
from afoot.providers.functions import schema as schemas

NO_ANNOTATION: Final = object()
_GENERATOR_TYPES = {abc.Generator, abc.AsyncGenerator, abc.Iterator, abc.AsyncIterator, abc.AsyncIterable}
_AWAITABLE_TYPES = {abc.Awaitable, abc.Coroutine}
_UNPROMISED_TYPES = {bytes, type(None), None, Any, object, NO_ANNOTATION}
_CONTENT_TYPES = (Content, ToolResult, Partial)
_ANY_TYPES = {Any, object}
_CONTAINER_TYPES = {
    list, tuple, set, frozenset, dict, abc.Sequence, abc.MutableSequence, abc.Collection, abc.Iterable,
    abc.Set, abc.Mapping, abc.MutableMapping,
}  # fmt: skip
_CHECKED_TYPES = (Result, ToolResult, Content, list, tuple)


class ValueEncoder(Protocol):
    """Encodes the values of a function. `schema` is None if text has no other form than itself."""

    @property
    def schema(self) -> schemas.Schema | None: ...

    def encode(self, value: Any) -> Result: ...


class ResultEncoder:
    """Encodes the values of one function. `schema` is None where its annotation promises nothing."""

    __slots__ = ("_adapter", "_is_text", "_is_wrapped", "schema")

    def __init__(self, annotation: Any = NO_ANNOTATION, is_generator: bool = False) -> None:
        value_type = _value_type(annotation, is_generator)
        self._is_text = value_type is str and not is_generator
        adapter = _adapter_or_none(value_type, is_generator)
        inner = None if adapter is None else _schema_or_none(adapter)
        self._adapter: TypeAdapter[Any] | None = None if inner is None else adapter
        self._is_wrapped: bool = inner is not None and not schemas.is_object(inner)
        self.schema: schemas.Schema | None = (
            _wrap_schema(inner) if inner is not None and self._is_wrapped else inner
        )

    def encode(self, value: Any) -> Result:
        """The result; raises ToolError.internal if the value does not fit its annotation or has no JSON."""
        if self._is_text and type(value) is str:  # the commonest result
            text = _encode_text(value)
            return Result(Raw(b'[{"type":"text","text":' + text + b"}]"), Raw(b'{"result":' + text + b"}"))
        if isinstance(value, _CHECKED_TYPES):
            if isinstance(value, ToolResult):
                return self._encode_tool_result(value)
            if isinstance(value, Result):  # the partials of a generator, joined
                self._check_promise("only partial results")
                return value
            if isinstance(value, Content) or is_content(value):
                self._check_promise("content")
                return Result(content_of(value))
        if self._adapter is None and (value is None or isinstance(value, str)):
            return Result(content_of(value))
        json = self._to_json(value)
        return Result(
            content_of(None) if value is None else _text_content(_as_text(value, json)),
            self._structured_content(json),
        )

    def _encode_tool_result(self, value: ToolResult) -> Result:
        content = value.content
        items = [content] if isinstance(content, str | Content) else list(content)
        raw = content_list(items)
        if value.structured is UNSET:
            if not value.is_error:
                self._check_promise("a ToolResult without structured content")
            return Result(raw, is_error=value.is_error)
        # A result that reports an error need not have the shape of a good one.
        json = json_of(value.structured) if value.is_error else self._to_json(value.structured)
        return Result(
            raw if items else _text_content(bytes(json).decode()),
            self._structured_content(json),
            value.is_error,
        )

    def _check_promise(self, what: str) -> None:
        """Refuse a result without structured content where a schema was published; raises ToolError."""
        if self.schema is not None:
            must = "annotate it with Content, or return ToolResult(content, structured=…)"
            text = f"the tool returned {what}, and its annotation promises a value; {must}"
            raise ToolError.internal(text, code="bad_result")

    def _to_json(self, value: Any) -> Raw:
        if self._adapter is None:
            return json_of(value)
        try:
            checked = self._adapter.validate_python(value, by_alias=True, by_name=True)
            return Raw(self._adapter.dump_json(checked, by_alias=True))
        except ValidationError as error:
            detail = schemas.explain_errors(error, "result")
            raise ToolError.internal(
                f"the tool's result does not fit its annotation: {detail}", code="bad_result"
            ) from error
        except (PydanticSerializationError, ValueError, TypeError, RecursionError) as error:
            raise unencodable(value, error) from error

    def _structured_content(self, json: Raw) -> Raw:
        is_object = bytes(json)[:1] == b"{"
        wrap = self._is_wrapped if self._adapter is not None else not is_object
        return Raw(b'{"result":' + bytes(json) + b"}") if wrap else json


def _as_text(value: Any, json: Raw) -> str:
    return value if type(value) is str else bytes(json).decode()


def _text_content(text: str) -> Raw:
    return Raw(b'[{"type":"text","text":' + _encode_text(text) + b"}]")


def _encode_text(text: str) -> bytes:
    """Text as JSON, without a check in the common case, because every result passes through here."""
    try:
        return encode_sized(text, len(text))
    except UnicodeEncodeError:
        return encode_sized(without_surrogates(text), len(text))


def _value_type(annotation: Any, is_generator: bool) -> Any:
    """The type of the function's result, without awaitable, generator and `Partial` around it."""
    origin, args = get_origin(annotation), get_args(annotation)
    if origin in _AWAITABLE_TYPES and args:
        return _value_type(args[-1], is_generator)
    if origin not in _GENERATOR_TYPES and not (is_generator and origin is abc.Iterable):
        return NO_ANNOTATION if is_generator else annotation
    returned = args[2:3] if origin is abc.Generator else ()
    options = [option for arg in (*args[:1], *returned) for option in _union_members(arg)]
    left = [option for option in options if option is not Partial and option is not type(None)]
    return reduce(or_, left) if left else NO_ANNOTATION


def _union_members(annotation: Any) -> tuple[Any, ...]:
    is_union = get_origin(annotation) in (Union, types.UnionType)
    return get_args(annotation) if is_union else (annotation if annotation is not None else type(None),)


def _adapter_or_none(annotation: Any, is_generator: bool) -> TypeAdapter[Any] | None:
    options = [_without_annotated(option) for option in _union_members(annotation)]
    unpromised = _UNPROMISED_TYPES | {str} if is_generator else _UNPROMISED_TYPES
    if all(option in unpromised for option in options) or any(map(_is_open_container, options)):
        return None
    if _mentions_content(annotation):
        return None
    try:
        return schemas.type_adapter(annotation)
    except PydanticUserError:  # a class that pydantic does not know: encoded as it is, without a schema
        return None


def _without_annotated(annotation: Any) -> Any:
    bare = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
    try:
        hash(bare)
    except TypeError:
        return ()
    return bare


def _is_open_container(annotation: Any) -> bool:
    """Whether the annotation is a container of anything, so that content may be in it, or in its place."""
    origin, args = get_origin(annotation), get_args(annotation)
    if origin in _CONTAINER_TYPES:
        values = [_without_annotated(arg) for arg in args if arg is not ...]
        return not values or any(value in _ANY_TYPES for value in values)
    return annotation in _CONTAINER_TYPES


def _mentions_content(annotation: Any) -> bool:
    return annotation in _CONTENT_TYPES or any(
        _mentions_content(arg) for arg in get_args(annotation) if not isinstance(arg, list)
    )


def _schema_or_none(of: TypeAdapter[Any]) -> schemas.Schema | None:
    try:
        return schemas.json_schema(of, "serialization")
    except PydanticUserError:
        return None


def _wrap_schema(inner: schemas.Schema) -> schemas.Schema:
    defs = {"$defs": inner["$defs"]} if "$defs" in inner else {}
    value = {key: item for key, item in inner.items() if key != "$defs"}
    return {"type": "object", "properties": {"result": value}, "required": ["result"], **defs}
