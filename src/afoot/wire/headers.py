"""Arguments mirrored in `Mcp-Param-*` headers: which a schema asks for, and whether they agree."""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct, json

from afoot.wire.jsonrpc import Fault
from afoot.wire.mcp import HEADER_MISMATCH, plain_header

_MIRRORED = ("string", "integer", "boolean")


class Mirror(Struct, frozen=True):
    """One argument that a header repeats."""

    path: tuple[str, ...]
    header: str
    kind: str


def mirrors(definition: bytes) -> list[Mirror]:
    """The headers that this tool's input schema asks for."""
    if b"x-mcp-header" not in definition:
        return []
    return list(_walk(json.decode(definition).get("inputSchema", {}), ()))


def check(wanted: list[Mirror], arguments: bytes, headers: Mapping[str, str]) -> None:
    """Header and argument must be there together and say the same; raises Fault."""
    values = json.decode(arguments)
    for mirror in wanted:
        name = f"mcp-param-{mirror.header}"
        _agree(name, headers.get(name.lower()), _at(values, mirror.path), mirror)


def _walk(schema: Any, path: tuple[str, ...]) -> Iterator[Mirror]:
    if not isinstance(schema, dict):
        return
    header, kind = schema.get("x-mcp-header"), schema.get("type")
    if path and isinstance(header, str) and kind in _MIRRORED:
        yield Mirror(path, header, str(kind))
    for name, inner in (schema.get("properties") or {}).items():
        yield from _walk(inner, (*path, name))


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
        digits = whole.removeprefix("-").isdigit() and len(whole) < 400 and not fraction.strip("0")
        return digits and int(whole) == value
    return sent == str(value)


def _at(values: Any, path: tuple[str, ...]) -> object:
    for step in path:
        values = values.get(step) if isinstance(values, dict) else None
    return values
