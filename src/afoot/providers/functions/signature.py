"""`Signature` makes a function's input schema from its parameters, and checks arguments in JSON.

`parse_docstring` finds the descriptions of the tool and of each parameter. The styles are those of Google,
NumPy, reST and Epydoc; the library `docstring_parser` reads each of them.
"""

import inspect
import re
import typing
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Annotated, Any, Final, get_args

import jsonschema_rs
import msgspec
from docstring_parser import epydoc, google, numpydoc, rest
from docstring_parser.common import DocstringParam, ParseError
from msgspec import Raw, Struct
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo

from afoot.engine.json_schema import find_misfits
from afoot.errors import ToolError
from afoot.providers.functions import schema as schemas
from afoot.providers.functions.dependencies import (
    DependencyPlan,
    dependencies_of,
    takes_context,
    type_hints,
)

_BY_NAME: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_SECTIONS: Final = [
    *google.DEFAULT_SECTIONS,
    *(
        google.Section(title, "param", google.SectionType.MULTIPLE)
        for title in ("Keyword Args", "Keyword Arguments", "Other Parameters")
    ),
]
_PARSERS: Final = (rest.parse, google.GoogleParser(_SECTIONS).parse, numpydoc.parse, epydoc.parse)
_HEADINGS: Final = tuple(f"{section.title}:" for section in _SECTIONS)
_FIELD: Final = re.compile(r"[:@]\w+[^:\n]*:")  # :param pages: and @param pages:

BoundArguments = tuple[tuple[Any, ...], dict[str, Any]]


class Docstring(Struct, frozen=True):
    """The author's words about a function. `description` is all but the sections."""

    description: str = ""
    parameters: dict[str, str] = {}


class Signature:
    """The parameters of a function. `context` names the parameter that gets the Context, if there is one.

    `plan` fills the parameters with `Depends`, if there are any; neither is in the schema.

    `bind` turns arguments into Python values; it raises ToolError.validation naming each that does not fit
    (E4). Where all parameters are plain, `validate` does the same in one step, and raises pydantic's own
    error.
    """

    __slots__ = ("_names", "bind", "context", "is_empty", "plan", "schema", "validate")

    def __init__(
        self,
        function: Callable[..., Any],
        doc: Docstring,
        raw: Mapping[str, Any] | None = None,
        overrides: Mapping[Callable[..., Any], Callable[..., Any]] | None = None,
    ) -> None:
        parameters = dict(inspect.signature(function).parameters)
        hints = type_hints(function)
        self.context = next((name for name in parameters if takes_context(hints.get(name))), None)
        if self.context is not None:
            del parameters[self.context]
        filled = dependencies_of(parameters, hints)
        self.plan = DependencyPlan(filled, overrides) if filled else None
        parameters = {name: one for name, one in parameters.items() if name not in filled}
        for parameter in parameters.values():
            if parameter.kind is parameter.VAR_POSITIONAL:
                must = f"name each parameter, or take **{parameter.name}"
                raise TypeError(f"*{parameter.name} cannot be offered: arguments have names; {must}")
        self.is_empty = not parameters and raw is None  # nothing to check
        self.validate: Callable[[bytes], BaseModel] | None = None
        self._names: list[str] = []
        if raw is not None:
            self.schema: schemas.Schema = dict(raw)
            self.bind: Callable[[Raw], BoundArguments] = _bind_by_schema(self.schema, parameters)
        else:
            try:
                model = _build_model(function, parameters, hints, doc)
                self.schema = _input_schema(model)
            except PydanticUserError as error:
                raise TypeError(_explain_unsupported(parameters, hints, error)) from error
            self._names = [info.alias or name for name, info in model.model_fields.items()]
            self.bind = _bind_by_model(model, parameters, self.misfit)
            if _is_simple(model, parameters):
                self.validate = model.__pydantic_validator__.validate_json

    def misfit(self, error: ValidationError) -> ToolError:
        """The error for arguments that did not fit, with their names (E4)."""
        return ToolError.validation(schemas.explain_errors(error, "arguments", self._names))


def _build_model(
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
        annotation = schemas.pydantic_readable(hints.get(name, Any))
        fields[_field_name(at, name)] = _model_field(parameter, annotation, doc.parameters.get(name))
    config = ConfigDict(extra=extra, arbitrary_types_allowed=False, protected_namespaces=())
    return create_model(getattr(function, "__name__", "tool"), __config__=config, **fields)


def _explain_unsupported(
    parameters: Iterable[str], hints: Mapping[str, Any], error: PydanticUserError
) -> str:
    """The message for a parameter whose type has no JSON schema. Pydantic's own does not name it."""
    for name in parameters:
        try:
            schemas.json_schema(schemas.type_adapter(hints.get(name, Any)), "validation")
        except PydanticUserError:
            kind = inspect.formatannotation(hints[name])
            takes = "take text, numbers, lists, dicts, dataclasses or pydantic models"
            return f"parameter {name} has a type that JSON cannot give ({kind}); {takes}"
    return f"the parameters have no JSON schema: {error.message.splitlines()[0]}"


def _model_field(parameter: inspect.Parameter, annotation: Any, description: str | None) -> tuple[Any, Any]:
    default = ... if parameter.default is parameter.empty else parameter.default
    known = [item for item in get_args(annotation)[1:] if isinstance(item, FieldInfo)]
    known += [default] if isinstance(default, FieldInfo) else []
    more: dict[str, Any] = {}
    if description and not any(info.description for info in known):
        more["description"] = description
    # The schema has the parameter's own name, whatever the name of its field in the model.
    if not any(info.alias or info.validation_alias for info in known):
        more["alias"] = parameter.name
    if isinstance(default, FieldInfo):
        return Annotated[annotation, default, Field(**more)], ... if default.is_required() else default
    return Annotated[annotation, Field(**more)], default


def _field_name(at: int, name: str) -> str:
    """The name of a parameter's field in the model: its own, unless pydantic forbids it."""
    return f"p{at}_{name.strip('_')}" if name.startswith("_") or hasattr(BaseModel, name) else name


def _input_schema(model: type[BaseModel]) -> schemas.Schema:
    schema = model.model_json_schema(schema_generator=schemas.LeanJsonSchema)
    schema.pop("title", None)
    schema.pop("description", None)
    schema.setdefault("properties", {})
    return schema


def _bind_by_model(
    model: type[BaseModel],
    parameters: Mapping[str, inspect.Parameter],
    misfit: Callable[[ValidationError], ToolError],
) -> Callable[[Raw], BoundArguments]:
    validate = model.__pydantic_validator__.validate_json
    simple = _is_simple(model, parameters)

    def bind(arguments: Raw) -> BoundArguments:
        try:
            filled = validate(bytes(arguments) or b"{}")
        except ValidationError as error:
            raise misfit(error) from error
        return ((), filled.__dict__) if simple else _split_arguments(filled, parameters)

    return bind


def _is_simple(model: type[BaseModel], parameters: Mapping[str, inspect.Parameter]) -> bool:
    return all(p.kind in _BY_NAME and name in model.model_fields for name, p in parameters.items())


def _split_arguments(filled: BaseModel, parameters: Mapping[str, inspect.Parameter]) -> BoundArguments:
    """The arguments by position and by name, for positional-only parameters, `**rest` and renamed fields."""
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


def _bind_by_schema(
    schema: schemas.Schema, parameters: Mapping[str, inspect.Parameter]
) -> Callable[[Raw], BoundArguments]:
    """Bind by a schema of the author's own: arguments are checked, and passed as they are."""
    try:
        validator = jsonschema_rs.validator_for(schema, mask="the value")
    except (jsonschema_rs.ValidationError, ValueError) as error:
        first = str(error).splitlines()[0]
        raise TypeError(f"input_schema is no JSON schema: {first}") from error
    takes_rest = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    only = next(iter(parameters), "")
    whole = len(parameters) == 1 and not takes_rest and only not in schema.get("properties", {})
    by_position = whole and parameters[only].kind is inspect.Parameter.POSITIONAL_ONLY

    def bind(arguments: Raw) -> BoundArguments:
        given = _decode_arguments(bytes(arguments) or b"{}")
        try:
            problems = [_describe_error(error) for error in find_misfits(validator, given, len(arguments))]
        except ValueError:
            problems = [schemas.TOO_DEEP]
        if not whole and not takes_rest:
            unknown = (key for key in given if key not in parameters)
            problems += [
                schemas.unknown_argument("arguments", key, parameters)
                for key in islice(unknown, schemas.MAX_EXPLAINED)
            ]
        if problems:
            raise ToolError.validation(schemas.join_problems(problems))
        if by_position:
            return (given,), {}
        return (), {only: given} if whole else given

    return bind


def _decode_arguments(arguments: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(arguments, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ToolError.validation(f"arguments: {error}") from error


def _describe_error(error: jsonschema_rs.ValidationError) -> str:
    path = ".".join(["arguments", *map(str, error.instance_path)])
    return f"{path}: {error.message}"


def parse_docstring(text: str | None) -> Docstring:
    """The parts of a docstring; text that is not understood stays in the description."""
    if not text:
        return Docstring()
    text = _sections_last(inspect.cleandoc(text))
    parsed = []
    for parser in _PARSERS:
        try:
            parsed.append(parser(text))
        except ParseError:
            continue
    if not parsed:
        return Docstring(text)
    doc = max(parsed, key=lambda candidate: len(candidate.meta))
    parameters = {}
    for entry in doc.meta:
        if isinstance(entry, DocstringParam) and entry.args[0] != "attribute" and entry.description:
            for name in entry.arg_name.split(","):
                parameters[name.strip().lstrip("*")] = " ".join(entry.description.split())
    return Docstring((doc.description or "").strip(), parameters)


def _sections_last(text: str) -> str:
    """The text with its Google sections and then its fields at the end.

    The library takes text that follows them for a part of them, or leaves it out; authors mean it as a
    part of the description.
    """
    parts = re.split(r"\n(?=\S)", text)  # each begins at the margin
    return "\n".join(sorted(parts, key=_rank))


def _rank(part: str) -> int:
    if _FIELD.match(part):
        return 2
    return int(part.splitlines()[0].rstrip() in _HEADINGS)
