"""JSON schemas of Python types, as models and hosts like them; pydantic is spoken to here."""

import copy
import sys
import types
import typing
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import reduce
from operator import or_
from typing import Annotated, Any, Union, cast, get_args, get_origin, get_type_hints

import typing_extensions
from pydantic import TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import ErrorDetails

Schema = dict[str, Any]
ERRORS_SHOWN = 10


class LeanJsonSchema(GenerateJsonSchema):
    """Without a title made from each field's name: it tells a model nothing, and costs it tokens."""

    # A default that has no JSON form is simply not shown.
    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def adapter(annotation: Any) -> TypeAdapter[Any]:
    """The validator and encoder of a type; raises what pydantic raises where there is none."""
    return TypeAdapter(readable(annotation))


def json_schema(of: TypeAdapter[Any], mode: typing.Literal["validation", "serialization"]) -> Schema:
    """Its schema, the root written out rather than referred to."""
    schema = of.json_schema(schema_generator=LeanJsonSchema, mode=mode)
    ref = schema.get("$ref", "")
    if ref.startswith("#/$defs/"):
        root = schema["$defs"][ref.removeprefix("#/$defs/")]
        schema = {**root, **{key: value for key, value in schema.items() if key != "$ref"}}
    return schema


def is_object(schema: Schema) -> bool:
    """Whether every value of this schema is a JSON object."""
    return schema.get("type") == "object"


def readable(annotation: Any) -> Any:
    """The same type, where pydantic can read it: below Python 3.12 it refuses `typing.TypedDict`."""
    if sys.version_info >= (3, 12):
        return annotation
    if typing_extensions.is_typeddict(annotation) and type(annotation).__module__ == "typing":
        return _rebuilt(annotation)
    origin, args = get_origin(annotation), get_args(annotation)
    if not args or origin is typing.Literal:
        return annotation
    if origin is Annotated:
        return cast("Any", Annotated)[(readable(args[0]), *args[1:])]
    new = tuple(readable(arg) if not isinstance(arg, list) else arg for arg in args)
    if all(a is b for a, b in zip(new, args, strict=True)):
        return annotation
    if origin in (Union, types.UnionType):
        return reduce(or_, new)
    return cast("Any", origin)[new]


def one_field(name: str, annotation: Any) -> Any:
    """A TypedDict with one field of this type."""
    make = cast("Callable[[str, dict[str, Any]], Any]", typing_extensions.TypedDict)
    return make("Form", {name: readable(annotation)})


def _rebuilt(typed_dict: Any) -> Any:
    hints = get_type_hints(typed_dict, include_extras=True)
    fields: dict[str, Any] = {}
    for name, hint in hints.items():
        bare = hint
        while get_origin(bare) in (typing.Required, typing.NotRequired):
            bare = get_args(bare)[0]
        kind: Any = typing.Required if name in typed_dict.__required_keys__ else typing.NotRequired
        fields[name] = kind[readable(bare)]
    make = cast("Callable[[str, dict[str, Any]], Any]", typing_extensions.TypedDict)
    rebuilt = make(typed_dict.__name__, fields)
    rebuilt.__doc__ = typed_dict.__doc__
    rebuilt.__module__ = typed_dict.__module__
    return rebuilt


def explain(error: ValidationError, root: str, known: Iterable[str] = ()) -> str:
    """What does not fit, field by field (E4); values are left out, they may be secrets."""
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    return listed([_problem(problem, root, known) for problem in problems])


def listed(problems: list[str]) -> str:
    """The first problems in one line, and how many more there are."""
    more = len(problems) - ERRORS_SHOWN
    shown = "; ".join(problems[:ERRORS_SHOWN])
    return f"{shown}; and {more} more" if more > 0 else shown


def unknown(root: str, name: str, known: Iterable[str]) -> str:
    """The line about a field that does not exist."""
    near = get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"{root}.{name}: unknown argument" + (f"; did you mean {near[0]}?" if near else "")


def _problem(problem: ErrorDetails, root: str, known: Iterable[str]) -> str:
    path = ".".join([root, *map(str, problem["loc"])])
    if problem["type"] == "extra_forbidden":
        name = str(problem["loc"][-1])
        return unknown(path.removesuffix("." + name), name, known if len(problem["loc"]) == 1 else ())
    return f"{path}: {problem['msg']}"


def form(schema: Schema) -> Schema:
    """The schema as an MCP form may have it: one flat object of plain fields.

    Raises TypeError naming a field that no form can show.
    """
    schema = copy.deepcopy(schema)
    defs = schema.pop("$defs", {})
    fields = {name: _field(field, defs) for name, field in schema.get("properties", {}).items()}
    for name, field in fields.items():
        if field.get("type") == "object" or not ({"type", "enum", "const", "oneOf", "anyOf"} & field.keys()):
            raise TypeError(f"a form has only plain fields: {name!r} is not one")
    out: Schema = {"type": "object", "properties": fields}
    if schema.get("required"):
        out["required"] = schema["required"]
    return out


def _field(field: Schema, defs: Schema) -> Schema:
    while "$ref" in field:
        target = defs[field["$ref"].removeprefix("#/$defs/")]
        field = {**target, **{key: value for key, value in field.items() if key != "$ref"}}
    choices = [choice for choice in field.get("anyOf", ()) if choice.get("type") != "null"]
    if len(choices) == 1:
        rest = {key: value for key, value in field.items() if key != "anyOf"}
        field = {**_field(choices[0], defs), **rest}
    if field.get("default", ...) is None:
        del field["default"]
    if "const" in field and "enum" not in field:
        field["enum"] = [field.pop("const")]
    return field
