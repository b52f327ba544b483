"""The codec turns facts, samples and rows into SQLite columns, and back.

Each record has a few columns to find it by, and a body in JSON. The facts of one call that were written
together share one body: a segment.
"""

from collections.abc import Iterable
from typing import Any, TypeVar

from msgspec import DecodeError, Raw, Struct, json
from msgspec.structs import FieldInfo, fields, replace

from afoot.core.facts import NOTHING, Entry, Fact, Reading, Sample
from afoot.core.ports import CallRow
from afoot.errors import StoreError

LARGE_BODY = 64 * 1024  # bytes; a larger body is not written on the event loop
LARGE_BATCH = 1024 * 1024  # bytes; nor is a batch with more in total, as after a disk was full

# A segment: facts of one call, written together. In the table: (position of the last fact, call, number of
# the last fact, body). In an EncodedBatch the first column is how many facts the segment has.
FactColumns = tuple[int, str, int, bytes]
SampleColumns = tuple[str, int, int, bytes]

T = TypeVar("T")

_encode = json.Encoder().encode
_fact_decoder: json.Decoder[Fact] = json.Decoder(Fact)
_segment_decoder: json.Decoder[list[Fact]] = json.Decoder(list[Fact])
_reading_decoder = json.Decoder(Reading)


class EncodedBatch(Struct):
    """A batch ready to be written; the first column of each segment is the number of its facts.

    `opened` and `ended` leave out the calls that were opened and ended in this batch.
    """

    facts: list[FactColumns]
    samples: list[SampleColumns]
    rows: dict[str, CallRow]
    opened: list[tuple[str, float]]
    ended: list[tuple[str]]
    size: int
    is_large: bool
    flush_rows: bool = False


def decode_facts(columns: Iterable[FactColumns]) -> list[tuple[int, Entry]]:
    """Decode rows (pos, call, seq, body) into single facts, each with its position; raises DecodeError."""
    found = []
    for pos, call, seq, body in columns:
        facts = _decode(_segment_decoder, body)
        back = len(facts) - 1  # a segment has the position and the number of its last fact
        found.extend([(pos - back + n, Entry(call, seq - back + n, fact)) for n, fact in enumerate(facts)])
    return found


def decode_samples(columns: Iterable[SampleColumns]) -> list[Sample]:
    """Decode rows (call, number, left_out, body) into samples: the readings that the history keeps.

    Raises DecodeError.
    """
    return [
        Sample(call, number, _decode(_reading_decoder, body), left) for call, number, left, body in columns
    ]


def _decode(decoder: json.Decoder[T], body: bytes) -> T:
    """The value of a body; raises DecodeError, whatever is wrong with a damaged one."""
    try:
        return decoder.decode(body)
    except (UnicodeDecodeError, RecursionError) as error:
        raise DecodeError(str(error)) from None


def fact_conflict(call: str) -> StoreError:
    """The error for a fact whose number is taken, or whose predecessor is missing."""
    return StoreError(
        f"a fact of call {call} is there already, or one is missing before it; nothing was written"
    )


def encode_repaired(ones: list[Entry]) -> bytes:
    """Encode a segment in which an empty Raw that is not NOTHING may have made the JSON invalid."""
    return b"[" + b",".join([_repaired(entry.fact, _encode(entry.fact)) for entry in ones]) + b"]"


def _repaired(fact: Fact, body: bytes) -> bytes:
    """Return `body`, or encode the fact again if an empty Raw made it invalid JSON.

    One unreadable fact would stop every reader of the journal that comes to it.
    """
    try:
        _fact_decoder.decode(body)
    except DecodeError:
        return _encode(storable(fact))
    return body


def storable(thing: Any) -> Any:
    """Return the value with every text made valid Unicode and every empty Raw left out, at any depth."""
    match thing:
        case str():
            return thing.encode(errors="replace").decode()
        case Struct():
            return replace(thing, **{field.name: _storable_field(thing, field) for field in fields(thing)})
        case list():
            return [storable(one) for one in thing]
        case dict():
            return {key: storable(one) for key, one in thing.items()}
    return thing


def _storable_field(of: Struct, field: FieldInfo) -> Any:
    value = getattr(of, field.name)
    if isinstance(value, Raw) and not value:
        return NOTHING if field.default is NOTHING else Raw(b"null")
    return storable(value)
