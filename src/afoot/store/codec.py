"""Facts, samples and rows as an SQLite file keeps them: a few columns to find them by, and a body in JSON."""

from collections.abc import Iterable
from typing import Any

from msgspec import DecodeError, Raw, Struct, json
from msgspec.structs import FieldInfo, fields, replace

from afoot.core.facts import NOTHING, Entry, Fact, Finished, Opened, Reading, Sample
from afoot.core.ports import Batch, Row
from afoot.errors import StoreError

LARGE = 64 * 1024  # a body over this is not written on the loop

FactColumns = tuple[int, str, int, bytes]  # of a stretch: facts of one call, written together
SampleColumns = tuple[str, int, int, bytes]
RowColumns = tuple[
    str, str, str, str, float, str, str | None, float | None, float | None, float | None, str | None
]

_encode = json.Encoder().encode
_fact: json.Decoder[Fact] = json.Decoder(Fact)
_stretch: json.Decoder[list[Fact]] = json.Decoder(list[Fact])
_reading = json.Decoder(Reading)


class Encoded(Struct):
    """A batch ready to be written, each stretch with its length before it.

    `opened` and `ended` leave out the calls that did both in this batch.
    """

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


def entries(columns: Iterable[FactColumns]) -> list[tuple[int, Entry]]:
    """Facts in their places, each with its position, out of (pos, call, seq, body)."""
    found = []
    for pos, call, seq, body in columns:
        facts = _stretch.decode(body)
        back = len(facts) - 1  # a stretch is known by its last fact
        found.extend([(pos - back + n, Entry(call, seq - back + n, fact)) for n, fact in enumerate(facts)])
    return found


def samples(columns: Iterable[SampleColumns]) -> list[Sample]:
    """Readings taken into the history, out of (call, number, left_out, body)."""
    return [Sample(call, number, _reading.decode(body), left) for call, number, left, body in columns]


def _encoded(batch: Batch) -> Encoded:
    stretches = _stretches(batch)
    samples = [_sample_columns(sample) for sample in batch.samples]
    facts = [(len(ones), ones[-1].call, ones[-1].seq, _body(ones)) for ones in stretches]
    sizes = [len(columns[3]) for columns in facts]
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


def _stretches(batch: Batch) -> list[list[Entry]]:
    """The batch's facts, call by call; the batch is put into that order, so that positions follow it."""
    by_call: dict[str, list[Entry]] = {}
    for entry in batch.entries:
        by_call.setdefault(entry.call, []).append(entry)
    stretches = list(by_call.values())
    for ones in stretches:
        if ones[-1].seq - ones[0].seq != len(ones) - 1:
            raise there_already(ones[0].call)
    if len(stretches) > 1:
        batch.entries = [entry for ones in stretches for entry in ones]
    return stretches


def there_already(call: str) -> StoreError:
    """The answer to a fact whose number is taken."""
    return StoreError(
        f"a fact of call {call} is there already, or one is missing before it; nothing was written"
    )


def _body(ones: list[Entry]) -> bytes:
    body = _encode([entry.fact for entry in ones])
    if b'":,' in body or b'":}' in body:
        return b"[" + b",".join([_mended(entry.fact, _encode(entry.fact)) for entry in ones]) + b"]"
    return body


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
