"""The codec turns facts, samples and rows into the columns of a store, and back.

Each record has a few columns to find it by, and a body in JSON. The facts of one call that were written
together share one body: a segment.
"""

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, TypeVar

from msgspec import DecodeError, Raw, Struct, json
from msgspec.structs import FieldInfo, fields, replace

from afoot.core.fact_size import fact_bytes
from afoot.core.facts import NOTHING, Entry, Fact, Finished, Reading, Sample
from afoot.core.large_json import LARGE_BYTES, encode_sized
from afoot.core.ports import Batch, CallRow
from afoot.errors import StoreError

LARGE_BODY = 64 * 1024  # bytes; a larger body is not written on the event loop
LARGE_BATCH = 1024 * 1024  # bytes; nor is a batch with more in total, as after a disk was full

# A segment: facts of one call, written together. In the table: (position of the last fact, call, number of
# the last fact, body). In an EncodedBatch the first column is how many facts the segment has.
FactColumns = tuple[int, str, int, bytes]
SampleColumns = tuple[str, int, int, bytes]

T = TypeVar("T")

_encode = json.Encoder().encode
_fact_of: Callable[[Entry], Fact] = attrgetter("fact")
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


def encode_batch(batch: Batch) -> EncodedBatch:
    """The batch as columns, call by call; raises StoreError where numbers of a call are missing.

    `batch.entries` is put into the same order, because positions follow it.
    """
    by_call: dict[str, list[Entry]] = {}
    for entry in batch.entries:
        by_call.setdefault(entry.call, []).append(entry)
    if len(by_call) > 1:
        batch.entries = [entry for ones in by_call.values() for entry in ones]
    facts: list[FactColumns] = []
    opened: list[tuple[str, float]] = []
    ended: list[tuple[str]] = []
    size, is_large = 0, False
    # Counting the bytes of each fact again would be a fifth of the work here.
    has_large = batch.content_bytes is None or batch.content_bytes >= LARGE_BYTES
    for call, ones in by_call.items():
        first, last = ones[0], ones[-1]
        if last.seq - first.seq != len(ones) - 1:
            raise fact_conflict(call)
        those = list(map(_fact_of, ones))
        if has_large:
            body = encode_sized(those, sum([fact_bytes(fact) for fact in those]))
        else:
            body = _encode(those)
        if b'":,' in body or b'":}' in body:
            body = encode_repaired(ones)
        facts.append((len(ones), call, last.seq, body))
        size += len(body)
        is_large = is_large or len(body) > LARGE_BODY
        is_over = Finished in map(type, those)
        if first.seq == 1 and not is_over:
            opened.append((call, first.fact.at))
        elif is_over and first.seq > 1:
            ended.append((call,))
    samples = [(one.call, one.number, one.left_out, _encode(one.reading)) for one in batch.samples]
    for row in batch.rows.values():
        # The message is the only text of a row outside its facts. Encoding it finds lone surrogates.
        if row.message:
            row.message.encode()
    is_large = is_large or size > LARGE_BATCH
    return EncodedBatch(facts, samples, batch.rows, opened, ended, size, is_large)


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
