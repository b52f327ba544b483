"""The way out of a function: its output schema by the return annotation, and its value as a result.

A return annotation of `str`, `None`, `Any` or content gives no output schema: such a result is for reading.
Everything else does; what is no JSON object is wrapped as `{"result": value}`, in the schema and in the value
alike, because structured content had to be an object before 2026-07-28.
"""

import collections.abc as abc
import types
from functools import reduce
from operator import or_
from typing import Annotated, Any, Final, Union, get_args, get_origin

import msgspec
from msgspec import Raw
from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_core import PydanticSerializationError

from afoot.core.facts import Result
from afoot.errors import ToolError
from afoot.providers import schema as schemas
from afoot.providers.content import (
    UNSET,
    Content,
    Partial,
    ToolResult,
    content_list,
    content_of,
    is_content,
    json_of,
    text_content,
    unencodable,
)

NO_ANNOTATION: Final = object()
_YIELDING = {abc.Generator, abc.AsyncGenerator, abc.Iterator, abc.AsyncIterator, abc.AsyncIterable}
_AWAITED = {abc.Awaitable, abc.Coroutine}
_FOR_READING = {str, bytes, type(None), None, Any, object, NO_ANNOTATION}
_OWN = (Content, ToolResult, Partial)
_SPECIAL = (Result, ToolResult, Content, list, tuple)
_encode = msgspec.json.Encoder().encode


class Output:
    """How one function's values become results. `schema` is None where nothing is promised."""

    __slots__ = ("_adapter", "_wrap", "is_plain", "schema")

    def __init__(self, annotation: Any = NO_ANNOTATION, is_generator: bool = False) -> None:
        adapter = _adapter(_value_type(annotation, is_generator))
        inner = None if adapter is None else _schema(adapter)
        self._adapter: TypeAdapter[Any] | None = None if inner is None else adapter
        self.is_plain: bool = self._adapter is None  # text is simply text
        self._wrap: bool = inner is not None and not schemas.is_object(inner)
        self.schema: schemas.Schema | None = _wrapped(inner) if inner is not None and self._wrap else inner

    def encode(self, value: Any) -> Result:
        """The result; raises ToolError.internal if the value does not fit its annotation or has no JSON."""
        if isinstance(value, _SPECIAL):
            if isinstance(value, Result):  # the partials of a generator, joined
                return value
            if isinstance(value, ToolResult):
                return self._whole(value)
            if isinstance(value, Content) or is_content(value):
                return Result(content_of(value))
        if self._adapter is None and (value is None or isinstance(value, str)):
            return Result(content_of(value))
        json = self._json(value)
        return Result(_text(value if type(value) is str else bytes(json).decode()), self._structured(json))

    def _whole(self, value: ToolResult) -> Result:
        content = value.content
        items = [content] if isinstance(content, str | Content) else list(content)
        raw = content_list(items)
        if value.structured is UNSET:
            return Result(raw, is_error=value.is_error)
        # A result that reports an error need not have the shape of a good one.
        json = json_of(value.structured) if value.is_error else self._json(value.structured)
        return Result(raw if items else _text(bytes(json).decode()), self._structured(json), value.is_error)

    def _json(self, value: Any) -> Raw:
        if self._adapter is None:
            return json_of(value)
        try:
            checked = self._adapter.validate_python(value, by_alias=True, by_name=True)
            return Raw(self._adapter.dump_json(checked, by_alias=True))
        except ValidationError as error:
            detail = schemas.explain(error, "result")
            raise ToolError.internal(
                f"the tool's result does not fit its annotation: {detail}", code="bad_result"
            ) from error
        except (PydanticSerializationError, ValueError, TypeError, RecursionError) as error:
            raise unencodable(value, error) from error

    def _structured(self, json: Raw) -> Raw:
        is_object = bytes(json)[:1] == b"{"
        wrap = self._wrap if self._adapter is not None else not is_object
        return Raw(b'{"result":' + bytes(json) + b"}") if wrap else json


def _text(text: str) -> Raw:
    """`text_content`, here again because every result passes through it."""
    try:
        return Raw(b'[{"type":"text","text":' + _encode(text) + b"}]")
    except UnicodeEncodeError:
        return text_content(text)


def _value_type(annotation: Any, is_generator: bool) -> Any:
    """What the function gives in the end: awaiting, yielding and partials taken away."""
    origin, args = get_origin(annotation), get_args(annotation)
    if origin in _AWAITED and args:
        return _value_type(args[-1], is_generator)
    if origin not in _YIELDING and not (is_generator and origin is abc.Iterable):
        return NO_ANNOTATION if is_generator else annotation
    returned = args[2:3] if origin is abc.Generator else ()
    options = [option for arg in (*args[:1], *returned) for option in _options(arg)]
    left = [option for option in options if option is not Partial and option is not type(None)]
    return reduce(or_, left) if left else NO_ANNOTATION


def _options(annotation: Any) -> tuple[Any, ...]:
    is_union = get_origin(annotation) in (Union, types.UnionType)
    return get_args(annotation) if is_union else (annotation if annotation is not None else type(None),)


def _adapter(annotation: Any) -> TypeAdapter[Any] | None:
    if all(_bare(option) in _FOR_READING for option in _options(annotation)) or _mentions_own(annotation):
        return None
    try:
        return schemas.adapter(annotation)
    except PydanticUserError:  # a class that pydantic does not know: encoded as it comes, promised nothing
        return None


def _bare(annotation: Any) -> Any:
    bare = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
    try:
        hash(bare)
    except TypeError:
        return ()
    return bare


def _mentions_own(annotation: Any) -> bool:
    return annotation in _OWN or any(
        _mentions_own(arg) for arg in get_args(annotation) if not isinstance(arg, list)
    )


def _schema(of: TypeAdapter[Any]) -> schemas.Schema | None:
    try:
        return schemas.json_schema(of, "serialization")
    except PydanticUserError:
        return None


def _wrapped(inner: schemas.Schema) -> schemas.Schema:
    defs = {"$defs": inner["$defs"]} if "$defs" in inner else {}
    value = {key: item for key, item in inner.items() if key != "$defs"}
    return {"type": "object", "properties": {"result": value}, "required": ["result"], **defs}
