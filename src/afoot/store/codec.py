"""Facts, samples and rows as an SQLite file keeps them: a few columns to find them by, and a body in JSON."""

from collections.abc import Iterable
from typing import Any

from msgspec import DecodeError, Raw, Struct, json
from msgspec.structs import FieldInfo, fields, replace

from afoot.core.facts import NOTHING, Entry, Fact, Reading, Sample
from afoot.errors import StoreError

LARGE = 64 * 1024  # a body over this is not written on the loop
MUCH = 1024 * 1024  # nor are bodies that are more together, as after a disk was full

FactColumns = tuple[int, str, int, bytes]  # of a stretch: facts of one call, written together
SampleColumns = tuple[str, int, int, bytes]
RowColumns = tuple[object, ...]

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
    rows: list[tuple[str, RowColumns]]
    opened: list[tuple[str, float]]
    ended: list[tuple[str]]
    size: int
    is_large: bool
    lists: bool = False


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


def there_already(call: str) -> StoreError:
    """The answer to a fact whose number is taken."""
    return StoreError(
        f"a fact of call {call} is there already, or one is missing before it; nothing was written"
    )


def mended(ones: list[Entry]) -> bytes:
    """The body of a stretch, if an empty Raw that is not NOTHING itself may have made it unreadable."""
    return b"[" + b",".join([_mended(entry.fact, _encode(entry.fact)) for entry in ones]) + b"]"


def _mended(fact: Fact, body: bytes) -> bytes:
    """The body again, if an empty Raw that is not NOTHING itself made it unreadable.

    One such fact would stop everybody who reads the journal on.
    """
    try:
        _fact.decode(body)
    except DecodeError:
        return _encode(cleaned(fact))
    return body


def cleaned(thing: Any) -> Any:
    """The same with every text made storable and every empty value left out, at any depth."""
    match thing:
        case str():
            return thing.encode(errors="replace").decode()
        case Struct():
            return replace(thing, **{field.name: _cleaned_field(thing, field) for field in fields(thing)})
        case list():
            return [cleaned(one) for one in thing]
        case dict():
            return {key: cleaned(one) for key, one in thing.items()}
    return thing


def _cleaned_field(of: Struct, field: FieldInfo) -> Any:
    value = getattr(of, field.name)
    if isinstance(value, Raw) and not value:
        return NOTHING if field.default is NOTHING else Raw(b"null")
    return cleaned(value)
