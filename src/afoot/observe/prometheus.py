"""`KeptFigures` keeps the figures of calls for `/metrics`; `exposition` writes them as Prometheus reads.

The names are those that OpenTelemetry's rules for Prometheus give: dots become underscores, units and `total`
are suffixes. So a dashboard finds the same figures, whichever way they came.
"""

import re
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from afoot.observe.call_notes import CallNotes
from afoot.observe.figures import ACTIVE, ADDED, BUCKETS, REFUSED, CallFigures, Instrument, Measurement

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

Labels = tuple[tuple[str, str], ...]

_NO_NAME = re.compile("[^a-zA-Z0-9_]")
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


class MetricLine(NamedTuple):
    """One line of a family: what is added to the family's name, the labels and the value."""

    suffix: str
    labels: Mapping[str, str]
    value: float


class MetricFamily(NamedTuple):
    """All samples of one figure, by the name that Prometheus knows it by."""

    name: str
    kind: str  # counter, gauge, histogram
    description: str
    samples: Sequence[MetricLine]


class KeptFigures:
    """The figures of one gateway's calls (`observe.telemetry.TelemetrySink`).

    They are kept from `start` on, which the first scrape calls: measured, they cost 15 µs of processor time a
    call, and a gateway that nobody scrapes does not pay that.
    """

    def __init__(self, refused: Mapping[str, int] = MappingProxyType({})) -> None:
        """`refused`: by caller, how many calls were over its quota."""
        self.begin: Callable[[], Awaitable[None]] | None = None  # has calls be told to this from now on
        self._figures = CallFigures(refused)
        self._counts: dict[Instrument, dict[Labels, float]] = {}
        self._buckets: dict[Instrument, dict[Labels, Buckets]] = {}

    async def start(self) -> None:
        """Keep the figures of calls from now on, if they are not kept already."""
        begin, self.begin = self.begin, None
        if begin is not None:
            await begin()

    def opened(self, notes: CallNotes) -> None:
        """Count a call that began."""
        self._figures.opened(notes)

    def finished(self, notes: CallNotes) -> None:
        """Note that a call is over for its caller: it is no longer active."""
        self._figures.finished(notes)

    def ended(self, notes: CallNotes) -> None:
        """Keep the values of this call: no more facts of it follow."""
        for instrument, value, attributes in self._figures.ended(notes):
            labels = tuple(attributes.items())
            if instrument.kind == "histogram":
                series = self._buckets.setdefault(instrument, {})
                if labels not in series:
                    series[labels] = Buckets()
                series[labels].add(value)
            else:
                counts = self._counts.setdefault(instrument, {})
                counts[labels] = counts.get(labels, 0.0) + value

    def families(self) -> Iterator[MetricFamily]:
        """The figures as they are now, one at a time."""
        yield _family(ACTIVE, _samples(self._figures.active()))
        yield _family(REFUSED, _samples(self._figures.refused()))
        for instrument in ADDED:
            if instrument.kind == "histogram":
                found = self._buckets.get(instrument, {})
                lines = [one for labels, kept in found.items() for one in kept.samples(dict(labels))]
                yield _family(instrument, lines)
            else:
                counts = self._counts.get(instrument, {})
                yield _family(instrument, [MetricLine("", dict(key), value) for key, value in counts.items()])


class Buckets:
    """The number of values in each bucket, and their sum."""

    def __init__(self) -> None:
        self._counts = [0] * (len(BUCKETS) + 1)
        self._sum = 0.0

    def add(self, value: float) -> None:
        """Add a value; one that is exactly a bound belongs below it."""
        self._counts[bisect_left(BUCKETS, value)] += 1
        self._sum += value

    def samples(self, labels: Mapping[str, str]) -> Iterator[MetricLine]:
        """Its lines: each bucket counts the values of all smaller ones, too."""
        total = 0
        for bound, count in zip((*BUCKETS, float("inf")), self._counts, strict=True):
            total += count
            yield MetricLine("_bucket", {**labels, "le": format_number(bound)}, total)
        yield MetricLine("_sum", labels, self._sum)
        yield MetricLine("_count", labels, total)


def exposition(family: MetricFamily) -> str:
    """The lines of one figure in the text format 0.0.4; empty if it has no samples."""
    if not family.samples:
        return ""
    help_text = family.description.replace("\\", r"\\").replace("\n", r"\n")
    lines = [f"# HELP {family.name} {help_text}", f"# TYPE {family.name} {family.kind}"]
    for suffix, labels, value in family.samples:
        told = ",".join(
            f'{_NO_NAME.sub("_", name)}="{text.translate(_ESCAPES)}"' for name, text in labels.items()
        )
        lines.append(f"{family.name}{suffix}{'{' + told + '}' if told else ''} {format_number(value)}")
    return "\n".join([*lines, ""])


def format_number(value: float) -> str:
    """A number as the format wants it."""
    if value == float("inf"):
        return "+Inf"
    return repr(int(value)) if value == int(value) else repr(float(value))


def prometheus_name(instrument: Instrument) -> str:
    """The name of an instrument by OpenTelemetry's rules for Prometheus."""
    name = _NO_NAME.sub("_", instrument.name)
    if instrument.unit == "s":
        name += "_seconds"
    return f"{name}_total" if instrument.kind == "counter" else name


def _family(instrument: Instrument, samples: Sequence[MetricLine]) -> MetricFamily:
    return MetricFamily(prometheus_name(instrument), instrument.kind, instrument.description, samples)


def _samples(measured: Iterable[Measurement]) -> list[MetricLine]:
    return [MetricLine("", attributes, value) for _, value, attributes in measured]
