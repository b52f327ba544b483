"""`Offer` is a function as a resource or a prompt; `resource`, `prompt` and `completion` make offers.

A read of a resource, and a prompt that is filled in, is a call of its function: with the clocks, the
progress, the questions and the history of any call. These calls are named `resource URI` and `prompt NAME`.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, TypeVar, Unpack, overload

import msgspec
from msgspec import Raw

from afoot.core.facts import Result
from afoot.core.names import PROMPT_PREFIX, RESOURCE_PREFIX
from afoot.core.uri_template import UriTemplate, unsafe_value
from afoot.errors import BadTool, ToolError
from afoot.providers.functions.options import ToolOptions, find_mistake
from afoot.providers.functions.tool import TOOL_NAME, FunctionTool, refuse_second_definition
from afoot.providers.offers.contents import encode_contents, encode_messages
from afoot.providers.offers.options import (
    PROMPT_CHECKS,
    RESOURCE_CHECKS,
    PromptOptions,
    ResourceOptions,
)

Json = dict[str, Any]
Arguments = dict[str, Any]
Encode = Callable[[Any], Result]
_F = TypeVar("_F", bound=Callable[..., Any])

_CALL_OPTIONS: Final = ("idle", "ceiling", "concurrency", "queue", "own_loop", "scopes")
_MIME_BY_TYPE: Final[dict[object, str]] = {str: "text/plain", bytes: "application/octet-stream"}


class ValueAsItIs:
    """An encoder that returns a function's value unchanged: its offer encodes it, with the requested URI."""

    schema: Final[Json] = {}  # not None: text takes no short cut past this encoder

    def encode(self, value: Any) -> Any:
        """The value."""
        return value


class Offer(Protocol):
    """A function that is a resource, a template of resources, or a prompt."""

    kind: str  # resource, template, prompt
    subject: str  # its URI, its template or its name
    tool: FunctionTool
    completions: dict[str, Callable[..., Any]]  # by argument

    def definition(self) -> Json:
        """The entry of its list, as MCP has it."""
        ...

    def check(self) -> None:
        """Raise BadTool if the function cannot be offered this way."""
        ...

    def read(self, arguments: Raw) -> tuple[Arguments, Encode]:
        """The arguments of the function, and the encoder of its value; raises ToolError.validation."""
        ...


def resource(uri: str, /, **options: Unpack[ResourceOptions]) -> Callable[[_F], _F]:
    """Offer a function as the resource of this URI, or as the resources of this URI template.

    The function does not change: a direct call does what it did before.
    """
    if not isinstance(uri, str):
        raise BadTool('a resource needs its URI: write @afoot.resource("config://app")')

    def decorate(function: _F) -> _F:
        return _attach(function, FunctionResource(function, uri, options))

    return decorate


@overload
def prompt(function: _F, /) -> _F: ...


@overload
def prompt(**options: Unpack[PromptOptions]) -> Callable[[_F], _F]: ...


def prompt(function: Any = None, /, **options: Unpack[PromptOptions]) -> Any:
    """Offer a function as a prompt. The function does not change: a direct call does what it did before."""

    def decorate(function: Any) -> Any:
        return _attach(function, FunctionPrompt(function, options))

    return decorate if function is None else decorate(function)


def completion(of: Callable[..., Any], argument: str, /) -> Callable[[_F], _F]:
    """Let a function complete an argument of a prompt, or a variable of a resource's URI.

    It gets the text that was typed so far, and, as a second parameter if it has one, the other arguments
    that are filled in already. It returns the possible values.
    """
    offers = function_offers(of)
    if not offers:
        raise BadTool(f"{of!r} is no prompt and no resource: put @afoot.prompt or @afoot.resource on it")

    def decorate(function: _F) -> _F:
        for offer in offers:
            offer.completions[argument] = function
        return function

    return decorate


def function_offers(function: object) -> "list[FunctionResource | FunctionPrompt]":
    """The offers of a function: its resources and its prompt."""
    found = getattr(function, "__afoot_offers__", None)
    return found if isinstance(found, list) else []  # some objects have every attribute


def declared_tools(function: object) -> list[FunctionTool]:
    """A function as each of the things that it is: a tool, resources, a prompt."""
    tool = getattr(function, "__afoot_tool__", None)
    own = [tool] if isinstance(tool, FunctionTool) else []
    return [*own, *(offer.tool for offer in function_offers(function))]


def is_tool(function: object) -> bool:
    """Whether a function is a tool: by its decorator, or because it has no other one."""
    return hasattr(function, "__afoot_tool__") or not function_offers(function)


def _attach(function: _F, offer: "FunctionResource | FunctionPrompt") -> _F:
    refuse_second_definition(offer.tool)
    setattr(function, "__afoot_offers__", [*function_offers(function), offer])  # noqa: B010
    return function


class FunctionResource:
    """A function as the resource of a URI, or of every URI that a template makes."""

    def __init__(self, function: Callable[..., Any], uri: str, options: ResourceOptions) -> None:
        self.subject = uri
        self.completions: dict[str, Callable[..., Any]] = {}
        self._options: Mapping[str, Any] = options
        self.tool = _function_tool(function, RESOURCE_PREFIX + uri, options)
        where = f"resource {uri} ({self.tool.location})"
        if wrong := find_mistake(options, RESOURCE_CHECKS):
            raise BadTool(f"{where}: {wrong}")
        _refuse_generator(self.tool, where)
        try:
            self.template = UriTemplate(uri)
        except ValueError as error:
            raise BadTool(f"{where}: {error}") from None
        self.kind = "resource" if self.template.is_fixed else "template"

    def definition(self) -> Json:
        """The entry of `resources/list`, or of `resources/templates/list`."""
        options = self._options
        key = "uri" if self.kind == "resource" else "uriTemplate"
        parts = {
            key: self.subject,
            **_named(self.tool, options),
            "mimeType": self.mime_type,
            "annotations": options.get("annotations"),
            "size": options.get("size") if self.kind == "resource" else None,
        }
        return {key: value for key, value in parts.items() if value is not None}

    @property
    def mime_type(self) -> str | None:
        """The type of its content, as far as it is known before a read."""
        promised = self.tool.return_annotation
        return self._options.get("mime_type") or _MIME_BY_TYPE.get(promised)

    def check(self) -> None:
        """Raise BadTool if the parameters of the function are not the variables of the URI."""
        schema = self.tool.signature.schema
        known, variables = schema.get("properties", {}), self.template.variables
        takes_rest = bool(schema.get("additionalProperties"))
        where = f"resource {self.subject} ({self.tool.location})"
        for name in variables:
            if name not in known and not takes_rest:
                raise BadTool(f"{where}: the function has no parameter {name}, which its URI names")
        for name in schema.get("required", ()):
            if name not in variables:
                raise BadTool(f"{where}: nothing gives the parameter {name}; write {{{name}}} in the URI")

    def read(self, arguments: Raw) -> tuple[Arguments, Encode]:
        """The values of the URI's variables, and the encoder of the contents; raises ToolError.validation."""
        uri = str(msgspec.json.decode(bytes(arguments) or b"{}").get("uri", ""))
        values = self.template.match(uri)
        if values is None:
            raise ToolError.validation(f"uri: {uri!r} does not fit {self.subject}")
        if wrong := unsafe_value(values, self.template.query):
            raise ToolError.validation(f"uri: {wrong}")
        mime_type = self._options.get("mime_type")
        return values, lambda value: encode_contents(value, uri, mime_type)


class FunctionPrompt:
    """A function as a prompt, whose parameters are the arguments of the prompt."""

    kind: str = "prompt"

    def __init__(self, function: Callable[..., Any], options: PromptOptions) -> None:
        name = options.get("name") or getattr(function, "__name__", type(function).__name__)
        self.subject = name
        self.completions: dict[str, Callable[..., Any]] = {}
        self._options: Mapping[str, Any] = options
        self.tool = _function_tool(function, PROMPT_PREFIX + name, options)
        where = f"prompt {name} ({self.tool.location})"
        if wrong := find_mistake(options, PROMPT_CHECKS):
            raise BadTool(f"{where}: {wrong}")
        if not TOOL_NAME.fullmatch(name):
            raise BadTool(f"{where}: {name!r} is no name of a prompt: use 1 to 128 of A-Z a-z 0-9 _ . -")
        _refuse_generator(self.tool, where)

    def definition(self) -> Json:
        """The entry of `prompts/list`."""
        schema = self.tool.signature.schema
        required = schema.get("required", ())
        arguments = [
            {"name": name, **_described(one, schema), "required": name in required}
            for name, one in schema.get("properties", {}).items()
        ]
        return {**_named(self.tool, self._options), "name": self.subject, "arguments": arguments}

    def check(self) -> None:
        """Raise BadTool if the parameters of the function cannot be arguments of a prompt."""
        _ = self.tool.signature

    def read(self, arguments: Raw) -> tuple[Arguments, Encode]:
        """The arguments, and the encoder of the messages; raises ToolError.validation."""
        given = msgspec.json.decode(bytes(arguments) or b"{}", type=dict[str, Any])
        description = self.tool.description
        return given, lambda value: encode_messages(value, description)


def choices(schema: Json, root: Json) -> list[str]:
    """The values that a schema lists: those of `Literal`, of an `Enum` and of `bool`."""
    if isinstance(ref := schema.get("$ref"), str):
        return choices(root.get("$defs", {}).get(ref.rpartition("/")[2], {}), root)
    if "enum" in schema:
        return [_as_text(value) for value in schema["enum"]]
    if "const" in schema:
        return [_as_text(schema["const"])]
    if schema.get("type") == "boolean":
        return ["true", "false"]
    if schema.get("type") == "array":
        return choices(schema.get("items") or {}, root)
    return [
        value
        for key in ("anyOf", "oneOf", "allOf")
        for one in schema.get(key, ())
        for value in choices(one, root)
    ]


def _function_tool(function: Callable[..., Any], name: str, options: Mapping[str, Any]) -> FunctionTool:
    kept: Any = {key: options[key] for key in _CALL_OPTIONS if key in options}
    own: ToolOptions = {**kept, "name": name}
    if "description" in options:
        own["description"] = options["description"]
    try:
        return FunctionTool(function, own, encoder=ValueAsItIs())
    except BadTool as error:
        raise BadTool(str(error)) from None


def _refuse_generator(tool: FunctionTool, where: str) -> None:
    if tool.is_generator_function:
        raise BadTool(f"{where}: a generator cannot be offered this way; return a list, and use ctx.report")


def _named(tool: FunctionTool, options: Mapping[str, Any]) -> Json:
    """The fields that resources, templates and prompts have in common."""
    parts = {
        "name": options.get("name") or getattr(tool.function, "__name__", "resource"),
        "title": options.get("title"),
        "description": tool.description or None,
        "icons": [{"src": options["icon"]}] if "icon" in options else None,
    }
    return {key: value for key, value in parts.items() if value is not None}


def _described(schema: Json, root: Json) -> Json:
    """The description of an argument. MCP sends every argument as text, so it also says what is accepted."""
    text = str(schema.get("description") or "")
    listed = choices(schema, root)
    kind = schema.get("type")
    if listed:
        text = " ".join(part for part in (text, f"(one of: {', '.join(listed)})") if part)
    elif kind in ("integer", "number", "array", "object"):
        text = " ".join(part for part in (text, f"({kind})") if part)
    found: Json = {"description": text} if text else {}
    return {**found, "title": schema["title"]} if "title" in schema else found


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
