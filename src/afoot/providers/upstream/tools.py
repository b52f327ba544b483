"""A server's tools as ours: their limits, and what is believed of their hints."""

import hashlib
from collections.abc import Iterable

import msgspec
from msgspec import Raw, Struct, field
from msgspec.structs import replace

from afoot.config import Server
from afoot.core.facts import Limits
from afoot.core.ports import Tool
from afoot.providers.upstream.record import Record
from afoot.wire import headers
from afoot.wire.headers import Mirror

CLOCKS = ("idle_s", "ceiling_s", "answer_s", "queue_s", "grace_s", "start_s")


class Hints(Struct):
    """What a tool says of itself; None: it does not say."""

    read_only: bool | None = field(name="readOnlyHint", default=None)
    destructive: bool | None = field(name="destructiveHint", default=None)
    idempotent: bool | None = field(name="idempotentHint", default=None)


class Definition(Struct):
    """What counts here of a definition; all of it is passed on."""

    name: str
    schema: Raw = field(name="inputSchema")
    hints: Hints | None = field(name="annotations", default=None)


class Offer(Struct, frozen=True):
    """A tool of a server, and what is needed to call it."""

    tool: Tool
    schema: bytes
    mirrors: list[Mirror] = []


_definition = msgspec.json.Decoder(Definition)


def limits_of(server: Server, limits: Limits) -> Limits:
    """The clocks of a server's tools: silence counts from the start only where the configuration says so."""
    own = {clock: getattr(server, clock) for clock in CLOCKS if getattr(server, clock) is not None}
    return replace(limits, patient=server.idle_s is None, **own)


def offers(definitions: Iterable[Raw], server: Server, limits: Limits, record: Record) -> dict[str, Offer]:
    """The tools that can be offered, by their names at the server; what cannot be is counted."""
    found: dict[str, Offer] = {}
    for raw in definitions:
        try:
            definition = _definition.decode(raw)
        except msgspec.DecodeError as error:
            record.odd("bad_tool", str(error))
            continue
        if not definition.name or not definition.name.isprintable():
            record.odd("bad_tool", f"{definition.name!r} is no name for a tool")
        elif definition.name in found:
            record.odd("tool_named_twice", definition.name)
        elif b"x-mcp-header" in bytes(raw) and headers.is_wrong(raw):
            record.odd(
                "bad_tool", f"{definition.name}: its x-mcp-header is not valid"
            )  # as the protocol says
        else:
            found[definition.name] = _offer(raw, definition, server, limits, record.server)
    return found


def _offer(raw: Raw, definition: Definition, server: Server, limits: Limits, name: str) -> Offer:
    hints = definition.hints or Hints()
    read_only, idempotent = definition.name in server.read_only, definition.name in server.idempotent
    # What the configuration says counts whatever the tool says; a listed tool's other hints do not.
    is_listed = (read_only or idempotent) and not server.trust_annotations
    tool = Tool(
        name=definition.name,
        server=name,
        definition=raw,
        limits=limits,
        read_only=read_only or (hints.read_only is True and not is_listed),
        idempotent=idempotent or (hints.idempotent is True and not is_listed),
        destructive=hints.destructive is True,
        digest=hashlib.sha256(raw).hexdigest(),
        inner=definition.name,
        trusted=server.trust_annotations or is_listed,
        approval=server.approval,
        starts=True,
    )
    return Offer(tool, bytes(definition.schema), headers.mirrors(bytes(raw)))
