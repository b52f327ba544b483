"""Facts, samples and rows as an SQLite file keeps them: a few columns to find them by, and a body in JSON."""

from collections.abc import Iterable
from typing import Any

from msgspec import DecodeError, Raw, Struct, json
from msgspec.structs import FieldInfo, fields, replace

from afoot.core.facts import (
    NOTHING,
    Answered,
    Asked,
    CancelRequested,
    Entry,
    Fact,
    Finished,
    Logged,
    Opened,
    Reading,
    Released,
    Reported,
    Sample,
    Started,
)
from afoot.core.ports import Batch, Row

LARGE = 64 * 1024  # a body over this is not written on the loop

FactColumns = tuple[str, int, float, str, bytes]
SampleColumns = tuple[str, int, int, bytes]
RowColumns = tuple[
    str, str, str, str, float, str, str | None, float | None, float | None, float | None, str | None
]

_KINDS = {
    kind: str(kind.__struct_config__.tag)
    for kind in (
        Opened, Started, Reported, Logged, Asked, Answered, CancelRequested, Finished, Released,
    )
}  # fmt: skip
_encode = json.Encoder().encode
_fact: json.Decoder[Fact] = json.Decoder(Fact)
_reading = json.Decoder(Reading)


class Encoded(Struct):
    """A batch ready to be written. `opened` and `ended` leave out the calls that did both in this batch."""

    facts: list[FactColumns]
    samples: list[SampleColumns]
    rows: list[RowColumns]
    opened: list[tuple[str, float]]
    ended: list[tuple[str]]
    size: int
    is_large: bool


def encoded(batch: Batch) -> Encoded:
    """The batch as columns. Half a character, which no file can keep, becomes a question mark."""
    try:
        return _encoded(batch)
    except UnicodeEncodeError:
        return _encoded(_cleaned(batch))


def entries(columns: Iterable[tuple[str, int, bytes]]) -> list[Entry]:
    """Facts in their places, out of (call, seq, body)."""
    decode = _fact.decode
    return [Entry(call, seq, decode(body)) for call, seq, body in columns]


def samples(columns: Iterable[SampleColumns]) -> list[Sample]:
    """Readings taken into the history, out of (call, number, left_out, body)."""
    return [Sample(call, number, _reading.decode(body), left) for call, number, left, body in columns]


def _encoded(batch: Batch) -> Encoded:
    facts = [_fact_columns(entry) for entry in batch.entries]
    samples = [_sample_columns(sample) for sample in batch.samples]
    sizes = [len(columns[4]) for columns in facts]
    opened = {e.call: e.fact.at for e in batch.entries if type(e.fact) is Opened}
    ended = {e.call for e in batch.entries if type(e.fact) is Finished}
    return Encoded(
        facts,
        samples,
        [_row_columns(row) for row in batch.rows.values()],
        # A call that opened and ended in one batch was never seen unfinished.
        [(call, at) for call, at in opened.items() if call not in ended],
        [(call,) for call in ended if call not in opened],
        sum(sizes),
        max(sizes, default=0) > LARGE,
    )


def _fact_columns(entry: Entry) -> FactColumns:
    fact = entry.fact
    body = _encode(fact)
    if b'":,' in body or b'":}' in body:
        body = _mended(fact, body)
    return entry.call, entry.seq, fact.at, _KINDS[type(fact)], body


def _mended(fact: Fact, body: bytes) -> bytes:
    """The body again, if an empty Raw that is not NOTHING itself made it unreadable.

    One such fact would stop everybody who reads the journal on.
    """
    try:
        _fact.decode(body)
    except DecodeError:
        return _encode(_cleaned(fact))
    return body


def _sample_columns(sample: Sample) -> SampleColumns:
    return sample.call, sample.number, sample.left_out, _encode(sample.reading)


def _row_columns(row: Row) -> RowColumns:
    if row.message is not None:
        row.message.encode()  # the only text in a row that stands in no fact
    return (
        row.id, row.tool, row.server, row.caller, row.opened, row.state, row.outcome,
        row.finished, row.progress, row.total, row.message,
    )  # fmt: skip


def _cleaned(thing: Any) -> Any:
    """The same with every text made storable and every empty value left out, at any depth."""
    match thing:
        case str():
            return thing.encode(errors="replace").decode()
        case Struct():
            return replace(thing, **{field.name: _cleaned_field(thing, field) for field in fields(thing)})
        case list():
            return [_cleaned(one) for one in thing]
        case dict():
            return {key: _cleaned(one) for key, one in thing.items()}
    return thing


def _cleaned_field(of: Struct, field: FieldInfo) -> Any:
    value = getattr(of, field.name)
    if isinstance(value, Raw) and not value:
        return NOTHING if field.default is NOTHING else Raw(b"null")
    return _cleaned(value)
