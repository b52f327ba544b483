"""JSON schemas of Python types, made by pydantic: `json_schema`, `form_schema`, and errors in words."""

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
MAX_PROBLEMS = 10  # that an error names
MAX_EXPLAINED = 1000  # that are put into words, to be counted: arguments may have 100,000 that do not fit
# jsonschema_rs finds every misfit, but describes no value that is nested over 255 deep: it raises ValueError.
TOO_DEEP = "arguments: do not fit, and are nested too deep to say where"


class LeanJsonSchema(GenerateJsonSchema):
    """A generator that makes no titles from field names: they tell a model nothing, and cost tokens."""

    # A default without a JSON form is left out of the schema.
    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def type_adapter(annotation: Any) -> TypeAdapter[Any]:
    """The validator and encoder of a type; raises pydantic's error where there is none."""
    return TypeAdapter(pydantic_readable(annotation))


def json_schema(of: TypeAdapter[Any], mode: typing.Literal["validation", "serialization"]) -> Schema:
    """The schema of a type, with its root written out instead of a `$ref`."""
    schema = of.json_schema(schema_generator=LeanJsonSchema, mode=mode)
    ref = schema.get("$ref", "")
    if ref.startswith("#/$defs/"):
        root = schema["$defs"][ref.removeprefix("#/$defs/")]
        schema = {**root, **{key: value for key, value in schema.items() if key != "$ref"}}
    return schema


def is_object(schema: Schema) -> bool:
    """Whether every value of this schema is a JSON object."""
    return schema.get("type") == "object"


def pydantic_readable(annotation: Any) -> Any:
    """The same type in a form that pydantic reads: below Python 3.12 it refuses `typing.TypedDict`."""
    if sys.version_info >= (3, 12):
        return annotation
    if typing_extensions.is_typeddict(annotation) and type(annotation).__module__ == "typing":
        return _rebuild_typed_dict(annotation)
    origin, args = get_origin(annotation), get_args(annotation)
    if not args or origin is typing.Literal:
        return annotation
    if origin is Annotated:
        return cast("Any", Annotated)[(pydantic_readable(args[0]), *args[1:])]
    new = tuple(pydantic_readable(arg) if not isinstance(arg, list) else arg for arg in args)
    if all(a is b for a, b in zip(new, args, strict=True)):
        return annotation
    if origin in (Union, types.UnionType):
        return reduce(or_, new)
    return cast("Any", origin)[new]


def one_field_type(name: str, annotation: Any) -> Any:
    """A TypedDict with one field of this type."""
    make = cast("Callable[[str, dict[str, Any]], Any]", typing_extensions.TypedDict)
    return make("Form", {name: pydantic_readable(annotation)})


def _rebuild_typed_dict(typed_dict: Any) -> Any:
    hints = get_type_hints(typed_dict, include_extras=True)
    fields: dict[str, Any] = {}
    for name, hint in hints.items():
        bare = hint
        while get_origin(bare) in (typing.Required, typing.NotRequired):
            bare = get_args(bare)[0]
        kind: Any = typing.Required if name in typed_dict.__required_keys__ else typing.NotRequired
        fields[name] = kind[pydantic_readable(bare)]
    make = cast("Callable[[str, dict[str, Any]], Any]", typing_extensions.TypedDict)
    rebuilt = make(typed_dict.__name__, fields)
    rebuilt.__doc__ = typed_dict.__doc__
    rebuilt.__module__ = typed_dict.__module__
    return rebuilt


def explain_errors(error: ValidationError, root: str, known: Iterable[str] = ()) -> str:
    """The validation errors, field by field (E4). Values are left out, as they may be secrets."""
    if error.error_count() > MAX_EXPLAINED:
        return f"{root}: {error.error_count()} fields do not fit, which are too many to name"
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    return join_problems([_describe_problem(problem, root, known) for problem in problems])


def join_problems(problems: list[str]) -> str:
    """The first problems in one line, and how many more there are."""
    more = len(problems) - MAX_PROBLEMS
    shown = "; ".join(problems[:MAX_PROBLEMS])
    return f"{shown}; and {more} more" if more > 0 else shown


def unknown_argument(root: str, name: str, known: Iterable[str]) -> str:
    """The message about an argument that does not exist."""
    near = get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"{root}.{name}: unknown argument" + (f"; did you mean {near[0]}?" if near else "")


def _describe_problem(problem: ErrorDetails, root: str, known: Iterable[str]) -> str:
    path = ".".join([root, *map(str, problem["loc"])])
    if problem["type"] == "extra_forbidden":
        name = str(problem["loc"][-1])
        return unknown_argument(
            path.removesuffix("." + name), name, known if len(problem["loc"]) == 1 else ()
        )
    return f"{path}: {problem['msg']}"


def form_schema(schema: Schema) -> Schema:
    """The schema as an MCP form may have it: one flat object of plain fields.

    Raises TypeError naming a field that no form can show.
    """
    schema = copy.deepcopy(schema)
    defs = schema.pop("$defs", {})
    fields = {name: _form_field(field, defs) for name, field in schema.get("properties", {}).items()}
    for name, field in fields.items():
        if field.get("type") == "object" or not ({"type", "enum", "const", "oneOf", "anyOf"} & field.keys()):
            raise TypeError(f"a form has only plain fields: {name!r} is not one")
    out: Schema = {"type": "object", "properties": fields}
    if schema.get("required"):
        out["required"] = schema["required"]
    return out


def _form_field(field: Schema, defs: Schema) -> Schema:
    while "$ref" in field:
        target = defs[field["$ref"].removeprefix("#/$defs/")]
        field = {**target, **{key: value for key, value in field.items() if key != "$ref"}}
    choices = [choice for choice in field.get("anyOf", ()) if choice.get("type") != "null"]
    if len(choices) == 1:
        rest = {key: value for key, value in field.items() if key != "anyOf"}
        field = {**_form_field(choices[0], defs), **rest}
    if field.get("default", ...) is None:
        del field["default"]
    if "const" in field and "enum" not in field:
        field["enum"] = [field.pop("const")]
    return field
