"""Arguments mirrored in `Mcp-Param-*` headers: which a schema asks for, and whether they agree."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Raw, Struct, json

from afoot.wire.jsonrpc import INVALID_PARAMS, Fault
from afoot.wire.mcp import HEADER_MISMATCH, plain_header

_MIRRORED = ("string", "integer", "boolean")
_VALUES = ("const", "default", "enum", "examples")  # keywords that hold values, not schemas
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")  # RFC 9110


class Mirror(Struct, frozen=True):
    """One argument that a header repeats."""

    path: tuple[str, ...]
    header: str
    kind: str


def mirrors(definition: bytes) -> list[Mirror]:
    """The headers that this tool's input schema asks for; none if any of its annotations is not valid."""
    if b"x-mcp-header" not in definition:
        return []
    schema = json.decode(definition).get("inputSchema", {})
    found = list(_walk(schema, ()))
    names = {mirror.header.lower() for mirror in found}
    is_valid = len(names) == len(found) == _annotations(schema)
    return found if is_valid else []


def is_wrong(definition: bytes | Raw) -> bool:
    """Whether an annotation of this tool's is not valid: then a client may not call it."""
    schema = json.decode(definition).get("inputSchema", {})
    found = list(_walk(schema, ()))
    return not len({mirror.header.lower() for mirror in found}) == len(found) == _annotations(schema)


def check(wanted: list[Mirror], arguments: bytes, headers: Mapping[str, str]) -> None:
    """Header and argument must be there together and say the same; raises Fault."""
    try:
        values = json.decode(arguments)
    except RecursionError:
        raise Fault(INVALID_PARAMS, "params.arguments: nested too deep") from None
    for mirror in wanted:
        name = f"mcp-param-{mirror.header}"
        _agree(name, headers.get(name.lower()), _at(values, mirror.path), mirror)


def _walk(schema: Any, path: tuple[str, ...]) -> Iterator[Mirror]:
    if not isinstance(schema, dict):
        return
    header, kind = schema.get("x-mcp-header"), schema.get("type")
    if path and isinstance(header, str) and _TOKEN.fullmatch(header) and kind in _MIRRORED:
        yield Mirror(path, header, str(kind))
    for name, inner in _properties(schema).items():
        yield from _walk(inner, (*path, name))


def _annotations(schema: Any) -> int:
    """How many annotations there are, also where none may be: in items, alternatives, definitions."""
    if isinstance(schema, list):
        return sum(map(_annotations, schema))
    if not isinstance(schema, dict):
        return 0
    inner = [value for key, value in schema.items() if key not in ("properties", *_VALUES)]
    inner += _properties(schema).values()
    return ("x-mcp-header" in schema) + sum(map(_annotations, inner))


def _properties(schema: dict[str, Any]) -> dict[str, Any]:
    found = schema.get("properties")
    return found if isinstance(found, dict) else {}


def _agree(name: str, sent: str | None, value: object, mirror: Mirror) -> None:
    where = "arguments." + ".".join(mirror.path)
    if value is None or not isinstance(value, str | int | float):
        if sent is not None:
            raise Fault(HEADER_MISMATCH, f"header {name}: sent, but {where} is not")
        return
    if sent is None:
        raise Fault(HEADER_MISMATCH, f"header {name}: missing, but {where} is given")
    plain = plain_header(sent)
    if plain is None or not _same(mirror.kind, value, plain):
        raise Fault(HEADER_MISMATCH, f"header {name}: does not match {where}")


def _same(kind: str, value: str | int | float, sent: str) -> bool:
    if isinstance(value, bool):
        return sent == ("true" if value else "false")
    if kind == "integer" and not isinstance(value, str):
        whole, _, fraction = sent.partition(".")
        digits = whole.isascii() and whole.removeprefix("-").isdigit() and len(whole) < 400
        return digits and not fraction.strip("0") and int(whole) == value
    return sent == str(value)


def _at(values: Any, path: tuple[str, ...]) -> object:
    for step in path:
        values = values.get(step) if isinstance(values, dict) else None
    return values
