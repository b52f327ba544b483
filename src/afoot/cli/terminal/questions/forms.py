"""`parse_pairs` and `fill_form` read values that a person types, by their JSON schema.

`parse_pairs` is for `key=value` on the command line. `fill_form` prompts for each property of a form,
with its default and its choices.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from math import isfinite
from typing import Any

import msgspec

from afoot.cli.client import USAGE, CliError
from afoot.cli.terminal.text import clean
from afoot.core.facts import Question

Schema = dict[str, Any]
LinePrompt = Callable[[str], str | None]  # shows a prompt and reads a line; None if the person declines
LinePrinter = Callable[[str], None]
_TRUE = {"true": True, "yes": True, "y": True, "on": True, "1": True}
_FALSE = {"false": False, "no": False, "n": False, "off": False, "0": False}
_TYPE_WORDS = {
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a JSON object",
    "null": "null",
    "string": "text",
}
_TYPE_NAMES = {bool: "boolean", int: "integer", float: "number", type(None): "null"}


class DeclineAnswer(Exception):
    """The person does not want to answer."""


class _FormField(msgspec.Struct, frozen=True):
    """One property of a form."""

    name: str
    schema: Schema
    root: Schema
    is_required: bool


def parse_pairs(words: Iterable[str], schema: Schema) -> dict[str, Any]:
    """The values of `key=value` words; raises CliError that names the first word that does not fit."""
    known: dict[str, Any] = schema.get("properties") or {}
    is_open = schema.get("additionalProperties", True) is not False
    found: dict[str, Any] = {}
    for word in words:
        name, sign, text = word.partition("=")
        if not sign or not name:
            raise CliError(USAGE, f"{word!r}: arguments are written key=value{_known_names(known)}")
        if name not in known and not (is_open and not known):
            near = get_close_matches(name, known, n=3, cutoff=0.5)
            hint = f"; nearest: {', '.join(near)}" if near else _known_names(known)
            if not is_open or near:
                raise CliError(USAGE, f"unknown argument {name!r}{hint}", nearest=near)
        try:
            found[name] = parse_value(text, known.get(name) or {}, schema)
        except ValueError as error:
            raise CliError(USAGE, f"{name}: {error}") from None
    return found


def parse_value(text: str, schema: Schema, root: Schema) -> Any:
    """The value of a text under a schema; raises ValueError that says what it must be."""
    kinds = list(dict.fromkeys(_types(schema, root)))
    if not kinds:
        return _parse_untyped(text)
    for kind in sorted(kinds, key=list(_PARSERS).index):
        try:
            return _PARSERS[kind](text, _resolve_ref(schema, root), root)
        except (ValueError, KeyError):
            continue
    raise ValueError(f"must be {' or '.join(_TYPE_WORDS[kind] for kind in kinds)}, not {text!r}")


def describe_schema(schema: Schema, root: Schema) -> str:
    """A schema in words: the types and limits of its value."""
    found = _resolve_ref(schema, root)
    words = " or ".join(dict.fromkeys(_TYPE_WORDS[kind] for kind in _types(schema, root)))
    limits = [
        f"{word} {found[key]:g}"
        for key, word in (("minimum", "at least"), ("maximum", "at most"))
        if isinstance(found.get(key), int | float)
    ]
    return ", ".join([words or "any value", *limits])


def fill_form(
    question: Question, ask: LinePrompt, say: LinePrinter, only: set[str] | None = None
) -> dict[str, Any]:
    """Prompt for the fields of a form, or for those in `only`; raises DeclineAnswer."""
    schema: Schema = msgspec.json.decode(question.body) if question.body else {}
    properties: dict[str, Any] = schema.get("properties") or {}
    if not properties and only is None:
        _confirm(ask, "accept? [y/N] ")
        return {}
    required = set(schema.get("required") or ())
    content: dict[str, Any] = {}
    for name, one in properties.items():
        if only is None or name in only:
            found = _ask_field(_FormField(name, one, schema, name in required), ask, say)
            if found is not None:
                content[name] = found
    return content


def visit_url(question: Question, ask: LinePrompt, say: LinePrinter) -> None:
    """Show an address and wait until the person has been there; raises DeclineAnswer."""
    body: Any = msgspec.json.decode(question.body) if question.body else ""
    address = body.get("url", "") if isinstance(body, dict) else body
    say(f"open {clean(str(address))}")
    _confirm(ask, "done? [y/N] ")


def form_as_words(schema: Schema) -> str:
    """The arguments of `afoot answer` for a form: its required fields as name=…, and their choices."""
    properties: dict[str, Any] = schema.get("properties") or {}
    names = [str(one) for one in schema.get("required") or properties]
    choices = {name: [str(one) for one, _ in _choices(properties.get(name) or {})] for name in names}
    hints = [f"{name}: {', '.join(found)}" for name, found in choices.items() if found]
    return clean(" ".join(f"{name}=…" for name in names) + (f" ({'; '.join(hints)})" if hints else ""))


def _ask_field(field: _FormField, ask: LinePrompt, say: LinePrinter) -> Any:
    """Ask until the answer fits; None if the field is left out."""
    choices = list(_choices(field.schema))
    if description := field.schema.get("description"):
        say(f"  {clean(str(description))}")
    for number, (_, title) in enumerate(choices, 1):
        say(f"  {number}) {clean(title)}")
    while True:
        text = ask(_prompt_text(field, choices))
        if text is None:
            raise DeclineAnswer
        if not text.strip():
            if "default" in field.schema:
                return field.schema["default"]
            if not field.is_required:
                return None
            say(f"  {clean(field.name)} is needed")
            continue
        try:
            return _parse_answer(text.strip(), field, choices)
        except ValueError as error:
            say(clean(f"  {field.name}: {error}"))


def _prompt_text(field: _FormField, choices: list[tuple[Any, str]]) -> str:
    title = clean(str(field.schema.get("title") or field.name))
    what = f"1-{len(choices)}" if choices else describe_schema(field.schema, field.root)
    if field.schema.get("type") == "array":
        what += ", with commas between"
    default = field.schema.get("default")
    if default is not None:
        what += f"; default {clean(msgspec.json.encode(default).decode())}"
    elif not field.is_required:
        what += "; optional"
    return f"{title} ({what}): "


def _parse_answer(text: str, field: _FormField, choices: list[tuple[Any, str]]) -> Any:
    if choices and field.schema.get("type") == "array":
        return [_parse_choice(part.strip(), choices) for part in text.split(",") if part.strip()]
    if choices:
        return _parse_choice(text, choices)
    found = parse_value(text, field.schema, field.root)
    _check_limits(found, field.schema)
    return found


def _parse_choice(text: str, choices: list[tuple[Any, str]]) -> Any:
    for one, title in choices:
        if text.lower() in (title.lower(), str(one).lower()):
            return one
    if text.isdecimal() and 1 <= int(text) <= len(choices):
        return choices[int(text) - 1][0]
    raise ValueError(f"must be one of {', '.join(title for _, title in choices)}, or its number")


def _choices(schema: Schema) -> Iterator[tuple[Any, str]]:
    """The values to choose from, with their titles."""
    if schema.get("type") == "array":
        schema = schema.get("items") or {}
    names = schema.get("enumNames") or ()
    for number, one in enumerate(schema.get("enum") or ()):
        yield one, str(names[number]) if number < len(names) else str(one)
    for one in [*(schema.get("oneOf") or ()), *(schema.get("anyOf") or ())]:
        if isinstance(one, dict) and "const" in one:
            yield one["const"], str(one.get("title") or one["const"])


def _check_limits(found: Any, schema: Schema) -> None:
    """Check the limits that a person can correct at once; the gateway checks all of them."""
    if isinstance(found, int | float) and not isinstance(found, bool):
        if "minimum" in schema and found < schema["minimum"]:
            raise ValueError(f"must be at least {schema['minimum']:g}")
        if "maximum" in schema and found > schema["maximum"]:
            raise ValueError(f"must be at most {schema['maximum']:g}")
    if isinstance(found, str):
        if len(found) < schema.get("minLength", 0):
            raise ValueError(f"must have at least {schema['minLength']} characters")
        if len(found) > schema.get("maxLength", len(found)):
            raise ValueError(f"must have at most {schema['maxLength']} characters")


def _confirm(ask: LinePrompt, prompt: str) -> None:
    text = ask(prompt)
    if text is None or text.strip().lower() not in ("y", "yes"):
        raise DeclineAnswer


def _known_names(known: Iterable[str]) -> str:
    names = ", ".join(known)
    return f"; known: {names}" if names else "; this tool takes none"


def _resolve_ref(schema: Schema, root: Schema) -> Schema:
    """The schema itself, or the one its `$ref` into the same document names."""
    for _ in range(8):
        place = schema.get("$ref")
        if not isinstance(place, str) or not place.startswith("#/"):
            break
        found: Any = root
        for step in place[2:].split("/"):
            found = found.get(step) if isinstance(found, dict) else None
        if not isinstance(found, dict):
            break
        schema = found
    return schema


def _types(schema: Schema, root: Schema) -> Iterator[str]:
    """The JSON types that a schema allows, if it says so."""
    schema = _resolve_ref(schema, root)
    declared = schema.get("type")
    if isinstance(declared, str):
        yield from [declared] if declared in _TYPE_WORDS else []
    elif isinstance(declared, list):
        yield from (kind for kind in declared if kind in _TYPE_WORDS)
    else:
        for name in ("anyOf", "oneOf"):
            for choice in schema.get(name) or ():
                if isinstance(choice, dict):
                    yield from _types(choice, root)
        for choice in [*(schema.get("enum") or ()), *([schema["const"]] if "const" in schema else ())]:
            yield _TYPE_NAMES.get(type(choice), "string")


def _parse_untyped(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _parse_boolean(text: str, *_: Any) -> bool:
    return {**_TRUE, **_FALSE}[text.strip().lower()]


def _parse_number(text: str, *_: Any) -> float:
    found = float(text)
    if not isfinite(found):
        raise ValueError  # JSON has no infinity and no NaN
    return found


def _json_parser(kind: type) -> Any:
    def read(text: str, *_: Any) -> Any:
        found = json.loads(text)
        if not isinstance(found, kind):
            raise ValueError
        return found

    return read


def _parse_null(text: str, *_: Any) -> None:
    if text != "null":
        raise ValueError


def _parse_list(text: str, schema: Schema, root: Schema) -> list[Any]:
    if text.lstrip().startswith("["):
        return _json_parser(list)(text)
    return [
        parse_value(part.strip(), schema.get("items") or {}, root) for part in text.split(",") if part.strip()
    ]


# Parsers in the order in which they are tried: every text is a string, so that comes last.
_PARSERS: dict[str, Any] = {
    "integer": lambda text, *_: int(text.replace("_", "")),
    "number": _parse_number,
    "boolean": _parse_boolean,
    "null": _parse_null,
    "object": _json_parser(dict),
    "array": _parse_list,
    "string": lambda text, *_: text,
}
