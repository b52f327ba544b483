"""Words into values: `key=value` and answers typed at a prompt, read by the schema they are for."""

import json
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from math import isfinite
from typing import Any

from afoot.cli.ending import USAGE, Stop

Schema = dict[str, Any]

_TRUE = {"true": True, "yes": True, "y": True, "on": True, "1": True}
_FALSE = {"false": False, "no": False, "n": False, "off": False, "0": False}
_WORDS = {
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a JSON object",
    "null": "null",
    "string": "text",
}


def pairs(words: Iterable[str], schema: Schema) -> dict[str, Any]:
    """The values of `key=value` words; raises Stop naming the word that does not fit."""
    known: dict[str, Any] = schema.get("properties") or {}
    is_open = schema.get("additionalProperties", True) is not False
    found: dict[str, Any] = {}
    for word in words:
        name, sign, text = word.partition("=")
        if not sign or not name:
            raise Stop(USAGE, f"{word!r}: arguments are written key=value{_listed(known)}")
        if name not in known and not (is_open and not known):
            near = get_close_matches(name, known, n=3, cutoff=0.5)
            hint = f"; nearest: {', '.join(near)}" if near else _listed(known)
            if not is_open or near:
                raise Stop(USAGE, f"unknown argument {name!r}{hint}", nearest=near)
        try:
            found[name] = value(text, known.get(name) or {}, schema)
        except ValueError as error:
            raise Stop(USAGE, f"{name}: {error}") from None
    return found


def value(text: str, schema: Schema, root: Schema) -> Any:
    """The value that a text means under a schema; raises ValueError saying what it must be."""
    kinds = list(dict.fromkeys(_kinds(schema, root)))
    if not kinds:
        return _guess(text)
    for kind in sorted(kinds, key=list(_READ).index):
        try:
            return _READ[kind](text, _resolved(schema, root), root)
        except (ValueError, KeyError):
            continue
    raise ValueError(f"must be {' or '.join(_WORDS[kind] for kind in kinds)}, not {text!r}")


def described(schema: Schema, root: Schema) -> str:
    """What a value must be, in words."""
    found = _resolved(schema, root)
    words = " or ".join(dict.fromkeys(_WORDS[kind] for kind in _kinds(schema, root)))
    limits = [
        f"{word} {found[key]:g}"
        for key, word in (("minimum", "at least"), ("maximum", "at most"))
        if isinstance(found.get(key), int | float)
    ]
    return ", ".join([words or "any value", *limits])


def _listed(known: Iterable[str]) -> str:
    names = ", ".join(known)
    return f"; known: {names}" if names else "; this tool takes none"


def _resolved(schema: Schema, root: Schema) -> Schema:
    """The schema that a reference into the same document names."""
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


def _kinds(schema: Schema, root: Schema) -> Iterator[str]:
    """The types that a schema allows, as far as it says."""
    schema = _resolved(schema, root)
    declared = schema.get("type")
    if isinstance(declared, str):
        yield from [declared] if declared in _WORDS else []
    elif isinstance(declared, list):
        yield from (kind for kind in declared if kind in _WORDS)
    else:
        for name in ("anyOf", "oneOf"):
            for choice in schema.get(name) or ():
                if isinstance(choice, dict):
                    yield from _kinds(choice, root)
        for choice in [*(schema.get("enum") or ()), *([schema["const"]] if "const" in schema else ())]:
            yield _KIND_OF.get(type(choice), "string")


def _guess(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _boolean(text: str, *_: Any) -> bool:
    return {**_TRUE, **_FALSE}[text.strip().lower()]


def _number(text: str, *_: Any) -> float:
    found = float(text)
    if not isfinite(found):
        raise ValueError  # JSON has no such number
    return found


def _json(kind: type) -> Any:
    def read(text: str, *_: Any) -> Any:
        found = json.loads(text)
        if not isinstance(found, kind):
            raise ValueError
        return found

    return read


def _null(text: str, *_: Any) -> None:
    if text != "null":
        raise ValueError


def _list(text: str, schema: Schema, root: Schema) -> list[Any]:
    if text.lstrip().startswith("["):
        return _json(list)(text)
    return [value(part.strip(), schema.get("items") or {}, root) for part in text.split(",") if part.strip()]


_KIND_OF = {bool: "boolean", int: "integer", float: "number", type(None): "null"}
# In this order: text fits everything, so it comes last.
_READ: dict[str, Any] = {
    "integer": lambda text, *_: int(text.replace("_", "")),
    "number": _number,
    "boolean": _boolean,
    "null": _null,
    "object": _json(dict),
    "array": _list,
    "string": lambda text, *_: text,
}
