"""`Metrics` gives the figures of calls to OpenTelemetry."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType

from opentelemetry.metrics import CallbackOptions, Counter, Histogram, Meter, Observation

from afoot.observe.call_notes import CallNotes
from afoot.observe.figures import ACTIVE, ADDED, BUCKETS, REFUSED, CallFigures, Instrument, Measurement


class Metrics:
    """The instruments, and the values that each call adds to them."""

    def __init__(self, meter: Meter, refused: Mapping[str, int] = MappingProxyType({})) -> None:
        """`refused`: by caller, how many calls were over its quota; those calls have no notes."""
        self._figures = CallFigures(refused)
        self._histograms: dict[Instrument, Histogram] = {}
        self._counters: dict[Instrument, Counter] = {}
        for one in ADDED:
            if one.kind == "histogram":
                self._histograms[one] = meter.create_histogram(
                    one.name, one.unit, one.description, explicit_bucket_boundaries_advisory=BUCKETS
                )
            else:
                self._counters[one] = meter.create_counter(one.name, one.unit, one.description)
        meter.create_observable_up_down_counter(
            ACTIVE.name, [_observing(self._figures.active)], ACTIVE.unit, ACTIVE.description
        )
        meter.create_observable_counter(
            REFUSED.name, [_observing(self._figures.refused)], REFUSED.unit, REFUSED.description
        )

    def opened(self, notes: CallNotes) -> None:
        """Count a call that began."""
        self._figures.opened(notes)

    def finished(self, notes: CallNotes) -> None:
        """Note that a call is over for its caller: it is no longer active."""
        self._figures.finished(notes)

    def ended(self, notes: CallNotes) -> None:
        """Record the values of this call: no more facts of it follow."""
        for instrument, value, attributes in self._figures.ended(notes):
            if instrument in self._histograms:
                self._histograms[instrument].record(value, attributes)
            else:
                self._counters[instrument].add(value, attributes)


def _observing(
    read: Callable[[], Iterator[Measurement]],
) -> Callable[[CallbackOptions], Iterable[Observation]]:
    """The callback that a thread of the SDK calls."""

    def observe(_: CallbackOptions) -> Iterable[Observation]:
        for _instrument, value, attributes in read():
            yield Observation(value, attributes)

    return observe
