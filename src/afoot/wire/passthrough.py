"""The parts of a message that afoot does not know: kept as they came, and put back on the other side (U8).

They travel as one encoded object, `more`: the unknown fields, and `_meta` without the keys that belong to one
hop. NOTHING stands for a message that has none of either.
"""

from collections.abc import Mapping, Set

import msgspec
from msgspec import Raw, Struct, field

from afoot.core.facts import NOTHING
from afoot.core.large_json import encode_sized

PROTOCOL_PREFIX = "io.modelcontextprotocol/"
CAPABILITIES_KEY = PROTOCOL_PREFIX + "clientCapabilities"
LOG_LEVEL_KEY = PROTOCOL_PREFIX + "logLevel"
OWN_PREFIX = "dev.afoot/"
TRACE_KEYS = frozenset(
    ("traceparent", "tracestate", "baggage")
)  # of a request, where the next span replaces it

# Keys of `_meta` that are said anew on each hop. Other keys of the protocol's prefix may be an extension's.
HOP_KEYS = frozenset(
    (
        "progressToken",
        *(
            PROTOCOL_PREFIX + name
            for name in (
                "protocolVersion", "clientInfo", "clientCapabilities", "logLevel", "serverInfo",
                "subscriptionId", "related-task",
            )
        ),
    )
)  # fmt: skip


class _Declared(Struct):
    extensions: dict[str, object] = {}


class _DeclaringMeta(Struct):
    capabilities: _Declared = field(name=CAPABILITIES_KEY, default_factory=_Declared)


class _DeclaringMore(Struct):
    meta: _DeclaringMeta = field(name="_meta", default_factory=_DeclaringMeta)


_encode = msgspec.json.Encoder().encode
_object_decoder = msgspec.json.Decoder(dict[str, Raw])


def is_forwarded(key: str) -> bool:
    """Whether a key of `_meta` is for the other side, and not for one hop (T2)."""
    return key not in HOP_KEYS and not key.startswith(OWN_PREFIX)


def unknown_fields(body: bytes | Raw, known: Set[str], hop: Set[str] = frozenset()) -> Raw:
    """The fields of an object besides `known`, and its `_meta` besides the keys of one hop and `hop`.

    NOTHING if there are none, or if it is no object.
    """
    try:
        fields = _object_decoder.decode(body or b"{}")
        meta = _object_decoder.decode(fields.pop("_meta", None) or b"{}")
    except (msgspec.DecodeError, RecursionError):
        return NOTHING
    more: dict[str, object] = {key: value for key, value in fields.items() if key not in known}
    if passed := {key: value for key, value in meta.items() if is_forwarded(key) and key not in hop}:
        more["_meta"] = passed
    return Raw(_encode(more)) if more else NOTHING


def merge(body: object, more: Raw, size: int = 0) -> object:
    """A message's object with the fields in `more`; where both have a field or `_meta` key, ours counts.

    `size`: about the bytes of the content in `body`, which may be large.
    """
    if not more:
        return body
    ours = _object_decoder.decode(encode_sized(body, size))
    theirs = _object_decoder.decode(more)
    meta = _object_decoder.decode(theirs.get("_meta", b"{}"))
    meta |= _object_decoder.decode(ours.get("_meta", b"{}"))
    merged: dict[str, object] = {**theirs, **ours}
    return {**merged, "_meta": meta} if meta else merged


def declared_extensions(more: Raw) -> Raw:
    """The extensions of the caller that `more` declares to its server, in one order; NOTHING without any."""
    if CAPABILITIES_KEY.encode() not in bytes(more):
        return NOTHING
    return sorted_extensions(msgspec.json.decode(more, type=_DeclaringMore).meta.capabilities.extensions)


def sorted_extensions(extensions: Mapping[str, object]) -> Raw:
    """Extensions as bytes that can be compared; NOTHING without any."""
    return Raw(msgspec.json.encode(extensions, order="deterministic")) if extensions else NOTHING


def fields_of(more: Raw) -> dict[str, Raw]:
    """The fields in `more`, `_meta` among them."""
    return _object_decoder.decode(more) if more else {}


def without_hop_keys(body: Raw) -> Raw:
    """An object whose `_meta` has no key of one hop; the very same one if it has no `_meta`."""
    if b'"_meta"' not in bytes(body):
        return body
    return unknown_fields(body, frozenset()) or Raw(b"{}")
