"""Where a JSON schema itself calls a value a secret: `writeOnly`, `format: password`, `x-secret` (S4)."""

import re
from collections.abc import Iterator, Mapping

from msgspec import DecodeError, Raw, Struct, json

MOST = 200  # schemas that may hold for one value; what refers to itself has an end
DECLARES = re.compile(rb'"writeOnly"\s*:\s*true|"format"\s*:\s*"password"|"x-secret"\s*:\s*true')

Schema = Mapping[str, object]


class Declared(Struct, frozen=True):
    """What a schema says of one value: the parts of it that hold there."""

    root: Schema
    parts: tuple[Schema, ...]

    @property
    def is_secret(self) -> bool:
        """Whether it is said to be one."""
        return any(
            one.get("writeOnly") is True or one.get("format") == "password" or one.get("x-secret") is True
            for one in self.parts
        )

    def below(self, name: str | int) -> "Declared | None":
        """The same for what lies inside it under this name, or at this place; None if nothing is said."""
        found = [part for one in self.parts for part in _inside(one, name)]
        return Declared(self.root, _expanded(self.root, found)) if found else None


def of_schema(schema: Raw) -> Declared | None:
    """What a schema says of secrets; None if that is nothing."""
    return _read(schema, "")


def of_answer(schema: Raw) -> Declared | None:
    """The same for an answer as it is sent, or several by their keys: what was asked for is its content."""
    asked = _read(schema, "")
    if asked is None:
        return None
    answer = {"properties": {"content": asked.root}}
    return Declared(asked.root, ({**answer, "additionalProperties": answer},))


def of_tool(definition: Raw) -> Declared | None:
    """What the input schema of a tool says of secrets; None if that is nothing."""
    return _read(definition, "inputSchema")


def _read(text: Raw, key: str) -> Declared | None:
    if not text or DECLARES.search(text) is None:
        return None
    try:
        found = json.decode(text)
    except (DecodeError, RecursionError):
        return None
    schema = found.get(key) if key and isinstance(found, dict) else found
    return Declared(schema, _expanded(schema, [schema])) if isinstance(schema, dict) else None


def _inside(schema: Schema, name: str | int) -> Iterator[object]:
    if isinstance(name, int):
        first = schema.get("prefixItems")
        yield first[name] if isinstance(first, list) and name < len(first) else schema.get("items")
        return
    properties = schema.get("properties")
    if isinstance(properties, dict) and name in properties:
        yield properties[name]
        return
    yield schema.get("additionalProperties")
    patterns = schema.get("patternProperties")
    if isinstance(patterns, dict):  # whose patterns may be anybody's: all of them count
        yield from patterns.values()


def _expanded(root: Schema, found: list[object]) -> tuple[Schema, ...]:
    """These schemas, and all that they refer to or are made of."""
    known: list[Schema] = []
    while found and len(known) < MOST:
        one = found.pop()
        if not isinstance(one, dict) or any(one is other for other in known):
            continue
        known.append(one)
        for key in ("allOf", "anyOf", "oneOf"):
            several = one.get(key)
            found += several if isinstance(several, list) else []
        found += [one[key] for key in ("then", "else") if key in one]
        if isinstance(ref := one.get("$ref"), str) and ref.startswith("#"):
            found.append(_referred(root, ref))
    return tuple(known)


def _referred(root: Schema, ref: str) -> object:
    at: object = root
    for step in ref.removeprefix("#").split("/")[1:]:
        at = at.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(at, dict) else None
    return at
