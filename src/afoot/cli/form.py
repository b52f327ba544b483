"""A question answered in a terminal: one prompt a property, read by its schema, with defaults and choices."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from afoot.cli.typed import Schema, described, value
from afoot.core.facts import Question
from afoot.observe.terminal import clean

Ask = Callable[[str], str | None]  # prints a prompt and gives a line; None if the person declines
Say = Callable[[str], None]


class Declined(Exception):
    """The person does not want to answer."""


def fill(question: Question, ask: Ask, say: Say, only: set[str] | None = None) -> dict[str, Any]:
    """The content that a person typed for a form; raises Declined. `only`: the fields that did not fit."""
    schema: Schema = msgspec.json.decode(question.body) if question.body else {}
    properties: dict[str, Any] = schema.get("properties") or {}
    if not properties and only is None:
        _confirm(ask, "accept? [y/N] ")
        return {}
    required = set(schema.get("required") or ())
    content: dict[str, Any] = {}
    for name, one in properties.items():
        if only is None or name in only:
            found = _field(_Field(name, one, schema, name in required), ask, say)
            if found is not None:
                content[name] = found
    return content


def visit(question: Question, ask: Ask, say: Say) -> None:
    """Send the person to an address and wait; raises Declined."""
    body: Any = msgspec.json.decode(question.body) if question.body else ""
    address = body.get("url", "") if isinstance(body, dict) else body
    say(f"open {clean(str(address))}")
    _confirm(ask, "done? [y/N] ")


def as_words(schema: Schema) -> str:
    """How a form is answered in a command: what it needs as name=…, and what there is to choose from."""
    properties: dict[str, Any] = schema.get("properties") or {}
    names = [str(one) for one in schema.get("required") or properties]
    choices = {name: [str(one) for one, _ in _choices(properties.get(name) or {})] for name in names}
    told = [f"{name}: {', '.join(found)}" for name, found in choices.items() if found]
    return clean(" ".join(f"{name}=…" for name in names) + (f" ({'; '.join(told)})" if told else ""))


class _Field(msgspec.Struct, frozen=True):
    """One property of a form."""

    name: str
    schema: Schema
    root: Schema
    is_required: bool


def _field(field: _Field, ask: Ask, say: Say) -> Any:
    """Ask until it fits; None: left out."""
    choices = list(_choices(field.schema))
    if description := field.schema.get("description"):
        say(f"  {clean(str(description))}")
    for number, (_, title) in enumerate(choices, 1):
        say(f"  {number}) {clean(title)}")
    while True:
        text = ask(_prompt(field, choices))
        if text is None:
            raise Declined
        if not text.strip():
            if "default" in field.schema:
                return field.schema["default"]
            if not field.is_required:
                return None
            say(f"  {clean(field.name)} is needed")
            continue
        try:
            return _read(text.strip(), field, choices)
        except ValueError as error:
            say(clean(f"  {field.name}: {error}"))


def _prompt(field: _Field, choices: list[tuple[Any, str]]) -> str:
    title = clean(str(field.schema.get("title") or field.name))
    what = f"1-{len(choices)}" if choices else described(field.schema, field.root)
    if field.schema.get("type") == "array":
        what += ", with commas between"
    default = field.schema.get("default")
    if default is not None:
        what += f"; default {clean(msgspec.json.encode(default).decode())}"
    elif not field.is_required:
        what += "; optional"
    return f"{title} ({what}): "


def _read(text: str, field: _Field, choices: list[tuple[Any, str]]) -> Any:
    if choices and field.schema.get("type") == "array":
        return [_chosen(part.strip(), choices) for part in text.split(",") if part.strip()]
    if choices:
        return _chosen(text, choices)
    found = value(text, field.schema, field.root)
    _check(found, field.schema)
    return found


def _chosen(text: str, choices: list[tuple[Any, str]]) -> Any:
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


def _check(found: Any, schema: Schema) -> None:
    """What a person can mend at once; the gateway checks everything."""
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


def _confirm(ask: Ask, prompt: str) -> None:
    text = ask(prompt)
    if text is None or text.strip().lower() not in ("y", "yes"):
        raise Declined
