"""The way into a function: its input schema by its parameters, and arguments checked straight from JSON."""

import inspect
import typing
from collections.abc import Callable, Iterable, Mapping
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import jsonschema_rs
import msgspec
from msgspec import Raw
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo

from afoot.errors import ToolError
from afoot.providers import schema as schemas
from afoot.providers.context import Context
from afoot.providers.docstring import Docstring

Bound = tuple[tuple[Any, ...], dict[str, Any]]
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Signature:
    """What a function takes. `context` is the parameter that gets the Context, if there is one.

    `bind` turns arguments into Python values; it raises ToolError.validation naming what does not fit (E4).
    Where all parameters are plain, `check` does the same in one step, and raises pydantic's own error.
    """

    __slots__ = ("bind", "check", "context", "is_empty", "schema")

    def __init__(
        self, function: Callable[..., Any], doc: Docstring, raw: Mapping[str, Any] | None = None
    ) -> None:
        parameters = dict(inspect.signature(function).parameters)
        hints = hints_of(function)
        self.context = next((name for name in parameters if is_context(hints.get(name))), None)
        if self.context is not None:
            del parameters[self.context]
        for parameter in parameters.values():
            if parameter.kind is parameter.VAR_POSITIONAL:
                must = f"name each parameter, or take **{parameter.name}"
                raise TypeError(f"*{parameter.name} cannot be offered: arguments have names; {must}")
        self.is_empty = not parameters and raw is None  # nothing to check
        self.check: Callable[[bytes], BaseModel] | None = None
        if raw is not None:
            self.schema: schemas.Schema = dict(raw)
            self.bind: Callable[[Raw], Bound] = _by_schema(self.schema, parameters)
        else:
            try:
                model = _model(function, parameters, hints, doc)
                self.schema = _input_schema(model)
            except PydanticUserError as error:
                raise TypeError(_strange(parameters, hints, error)) from error
            self.bind = _by_model(model, parameters)
            if _is_simple(model, parameters):
                self.check = model.__pydantic_validator__.validate_json


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations, strings resolved; raises TypeError naming what cannot be found."""
    target = inspect.unwrap(function)
    target = target if inspect.isroutine(target) else getattr(target, "func", type(target).__call__)
    # Context may be imported for the type checker alone.
    names = {"Context": Context, **getattr(target, "__globals__", {})}
    try:
        return typing.get_type_hints(target, globalns=names, include_extras=True)
    except (NameError, AttributeError, SyntaxError) as error:
        must = "name what is at the top of its module"
        raise TypeError(f"an annotation cannot be resolved: {error}; {must}") from error


def is_context(annotation: Any) -> bool:
    """Whether a parameter with this annotation wants the Context (P2)."""
    if get_origin(annotation) is Annotated:
        return is_context(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return any(is_context(option) for option in get_args(annotation))
    return annotation is Context


def _model(
    function: Callable[..., Any],
    parameters: Mapping[str, inspect.Parameter],
    hints: Mapping[str, Any],
    doc: Docstring,
) -> type[BaseModel]:
    fields: dict[str, Any] = {}
    extra: typing.Literal["allow", "forbid"] = "forbid"
    for at, (name, parameter) in enumerate(parameters.items()):
        if parameter.kind is parameter.VAR_KEYWORD:
            extra = "allow"
            continue
        annotation = schemas.readable(hints.get(name, Any))
        fields[_field_name(at, name)] = _field(parameter, annotation, doc.parameters.get(name))
    config = ConfigDict(extra=extra, arbitrary_types_allowed=False, protected_namespaces=())
    return create_model(getattr(function, "__name__", "tool"), __config__=config, **fields)


def _strange(parameters: Iterable[str], hints: Mapping[str, Any], error: PydanticUserError) -> str:
    """Which parameter it is that has no JSON, and what would have; pydantic tells that to nobody."""
    for name in parameters:
        try:
            schemas.json_schema(schemas.adapter(hints.get(name, Any)), "validation")
        except PydanticUserError:
            kind = inspect.formatannotation(hints[name])
            takes = "take text, numbers, lists, dicts, dataclasses or pydantic models"
            return f"parameter {name} has a type that JSON cannot give ({kind}); {takes}"
    return f"the parameters have no JSON schema: {error.message.splitlines()[0]}"


def _field(parameter: inspect.Parameter, annotation: Any, said: str | None) -> tuple[Any, Any]:
    default = ... if parameter.default is parameter.empty else parameter.default
    known = [item for item in get_args(annotation)[1:] if isinstance(item, FieldInfo)]
    known += [default] if isinstance(default, FieldInfo) else []
    more: dict[str, Any] = {}
    if said and not any(info.description for info in known):
        more["description"] = said
    # The wire knows the parameter by its own name, whatever the model had to call it.
    if not any(info.alias or info.validation_alias for info in known):
        more["alias"] = parameter.name
    if isinstance(default, FieldInfo):
        return Annotated[annotation, default, Field(**more)], ... if default.is_required() else default
    return Annotated[annotation, Field(**more)], default


def _field_name(at: int, name: str) -> str:
    """The parameter's own name, unless pydantic would trip over it."""
    return f"p{at}_{name.strip('_')}" if name.startswith("_") or hasattr(BaseModel, name) else name


def _input_schema(model: type[BaseModel]) -> schemas.Schema:
    schema = model.model_json_schema(schema_generator=schemas.LeanJsonSchema)
    schema.pop("title", None)
    schema.pop("description", None)
    schema.setdefault("properties", {})
    return schema


def _by_model(model: type[BaseModel], parameters: Mapping[str, inspect.Parameter]) -> Callable[[Raw], Bound]:
    validate = model.__pydantic_validator__.validate_json
    wire_names = [info.alias or name for name, info in model.model_fields.items()]
    simple = _is_simple(model, parameters)

    def bind(arguments: Raw) -> Bound:
        try:
            filled = validate(bytes(arguments) or b"{}")
        except ValidationError as error:
            raise ToolError.validation(schemas.explain(error, "arguments", wire_names)) from error
        return ((), filled.__dict__) if simple else _spread(filled, parameters)

    return bind


def _is_simple(model: type[BaseModel], parameters: Mapping[str, inspect.Parameter]) -> bool:
    return all(p.kind in _NAMED and name in model.model_fields for name, p in parameters.items())


def _spread(filled: BaseModel, parameters: Mapping[str, inspect.Parameter]) -> Bound:
    """Positional-only parameters, `**rest` and names that pydantic cannot have."""
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for at, (name, parameter) in enumerate(parameters.items()):
        if parameter.kind is parameter.VAR_KEYWORD:
            named.update(filled.__pydantic_extra__ or {})
        elif parameter.kind is parameter.POSITIONAL_ONLY:
            positional.append(filled.__dict__[_field_name(at, name)])
        else:
            named[name] = filled.__dict__[_field_name(at, name)]
    return tuple(positional), named


def _by_schema(schema: schemas.Schema, parameters: Mapping[str, inspect.Parameter]) -> Callable[[Raw], Bound]:
    """A schema of the author's own: arguments are checked, and passed as they came."""
    try:
        validator = jsonschema_rs.validator_for(schema, mask="the value")
    except (jsonschema_rs.ValidationError, ValueError) as error:
        first = str(error).splitlines()[0]
        raise TypeError(f"input_schema is no JSON schema: {first}") from error
    takes_rest = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    only = next(iter(parameters), "")
    whole = len(parameters) == 1 and not takes_rest and only not in schema.get("properties", {})
    by_position = whole and parameters[only].kind is inspect.Parameter.POSITIONAL_ONLY

    def bind(arguments: Raw) -> Bound:
        given = _decoded(bytes(arguments) or b"{}")
        problems = [_problem(error) for error in validator.iter_errors(given)]
        if not whole and not takes_rest:
            problems += [
                schemas.unknown("arguments", key, parameters) for key in given if key not in parameters
            ]
        if problems:
            raise ToolError.validation(schemas.listed(problems))
        if by_position:
            return (given,), {}
        return (), {only: given} if whole else given

    return bind


def _decoded(arguments: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(arguments, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ToolError.validation(f"arguments: {error}") from error


def _problem(error: jsonschema_rs.ValidationError) -> str:
    path = ".".join(["arguments", *map(str, error.instance_path)])
    return f"{path}: {error.message}"
