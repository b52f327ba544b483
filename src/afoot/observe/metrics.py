"""Numbers of calls as metrics: by tool, server and outcome, of no more tools than a backend can bear."""

from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from opentelemetry.metrics import CallbackOptions, Histogram, Meter, Observation

from afoot.observe.pulse import Pulse
from afoot.observe.spans import METHOD, error_type
from afoot.tables import BUILT_IN

MOST_TOOLS = 300  # pages and plugins bring tools without end; those beyond are counted together
OTHER = "_OTHER"
# As the conventions have them, and further: calls here may take an hour.
BUCKETS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 900, 3600)


class Metrics:
    """The instruments, and what each call adds to them."""

    def __init__(self, meter: Meter, refused: Mapping[str, int] = MappingProxyType({})) -> None:
        """`refused`: by caller, how many calls were over its quota, so that there are none to tell of."""
        self._refused = refused
        self._tools: set[tuple[str, str]] = set()
        self._active: Counter[tuple[str, str]] = Counter()

        def seconds(name: str, what: str) -> Histogram:
            return meter.create_histogram(name, "s", what, explicit_bucket_boundaries_advisory=BUCKETS)

        self._duration = seconds("mcp.server.operation.duration", "From a request to its result.")
        self._errand = seconds("mcp.client.operation.duration", "From a request to a server to its result.")
        self._first = seconds("afoot.call.first_report", "From the start of a tool to its first report.")
        self._gap = seconds("afoot.call.longest_gap", "The longest that a tool which reports was silent.")
        self._cpu = seconds("afoot.call.cpu", "Processor time of a tool in a process of its own.")
        self._wait = seconds("afoot.question.wait", "How long a question was open.")
        self._stalls = meter.create_counter("afoot.call.stalls", "{stall}", "Times a call advanced no more.")
        self._reports = meter.create_counter("afoot.reports", "{report}", "Reports of tools.")
        self._repaired = meter.create_counter(
            "afoot.reports.repaired", "{report}", "Reports whose numbers had to be made to rise."
        )
        self._dropped = meter.create_counter(
            "afoot.reports.dropped", "{report}", "Reports that came after the end."
        )
        meter.create_observable_up_down_counter(
            "afoot.calls.active", [self._observe], "{call}", "Calls that are not over."
        )
        meter.create_observable_counter(
            "afoot.quota.refused", [self._over], "{call}", "Calls over the quota of their caller."
        )

    def opened(self, pulse: Pulse) -> None:
        """A call began."""
        self._active[self._name(pulse)] += 1

    def finished(self, pulse: Pulse) -> None:
        """A call is over for its caller."""
        self._active[self._name(pulse)] -= 1

    def ended(self, pulse: Pulse) -> None:
        """Nothing more comes of this call."""
        call, end = pulse.live.call, pulse.live.call.end
        if end is None:
            return
        tool, server = self._name(pulse)
        about = {"gen_ai.tool.name": tool, "afoot.server": server}
        error = error_type(end)
        ended = {**about, "afoot.outcome": end.outcome, **({"error.type": error} if error else {})}
        operation = {**ended, "mcp.method.name": METHOD}
        self._duration.record(end.at - call.opened.at, operation)
        if server not in BUILT_IN and pulse.tries:
            self._errand.record(end.at - pulse.tries[-1].began, operation)
        if pulse.first is not None and pulse.tries:
            self._first.record(max(0.0, pulse.first - pulse.tries[0].began), ended)
            self._gap.record(pulse.gap_s, ended)
        if end.cpu_s:
            self._cpu.record(end.cpu_s, ended)
        for kind, waited_s in pulse.waits:
            self._wait.record(waited_s, {**about, "afoot.question.kind": kind})
        counts = (
            (self._stalls, pulse.stalls),
            (self._reports, call.readings + call.contents),
            (self._repaired, pulse.live.series.repaired),
            (self._dropped, pulse.late),
        )
        for counter, count in counts:
            if count:
                counter.add(count, about)

    def _name(self, pulse: Pulse) -> tuple[str, str]:
        named = pulse.live.call.opened.tool, pulse.live.call.opened.server
        if named not in self._tools:
            if len(self._tools) >= MOST_TOOLS:
                return OTHER, OTHER
            self._tools.add(named)
        return named

    def _over(self, _: CallbackOptions) -> Iterable[Observation]:
        for caller, count in list(self._refused.items()):
            yield Observation(count, {"afoot.caller": caller})

    def _observe(self, _: CallbackOptions) -> Iterable[Observation]:
        """Asked from a thread of the SDK's: a copy is made in one go."""
        for (tool, server), count in list(self._active.items()):
            yield Observation(count, {"gen_ai.tool.name": tool, "afoot.server": server})
