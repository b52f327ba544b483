"""`Metrics` counts and measures calls by tool, server and outcome, for up to MAX_TOOLS tools."""

from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from opentelemetry.metrics import CallbackOptions, Histogram, Meter, Observation

from afoot.config.tables import BUILT_IN_SERVERS
from afoot.observe.call_notes import CallNotes
from afoot.observe.spans import METHOD, error_type

MAX_TOOLS = 300  # pages and plugins bring new tools without end; those beyond are counted together
OTHER = "_OTHER"
# The buckets of the OpenTelemetry conventions, and further ones: calls here may take an hour.
BUCKETS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 900, 3600)


class Metrics:
    """The instruments, and the values that each call adds to them."""

    def __init__(self, meter: Meter, refused: Mapping[str, int] = MappingProxyType({})) -> None:
        """`refused`: by caller, how many calls were over its quota; those calls have no notes."""
        self._refused = refused
        self._tools: set[tuple[str, str]] = set()
        self._active: Counter[tuple[str, str]] = Counter()

        def seconds(name: str, what: str) -> Histogram:
            return meter.create_histogram(name, "s", what, explicit_bucket_boundaries_advisory=BUCKETS)

        self._duration = seconds("mcp.server.operation.duration", "From a request to its result.")
        self._upstream = seconds("mcp.client.operation.duration", "From a request to a server to its result.")
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

    def opened(self, notes: CallNotes) -> None:
        """Count a call that began."""
        self._active[self._name(notes)] += 1

    def finished(self, notes: CallNotes) -> None:
        """Count a call down that is over for its caller."""
        self._active[self._name(notes)] -= 1

    def ended(self, notes: CallNotes) -> None:
        """Record the values of this call: no more facts of it follow."""
        call, end = notes.live.call, notes.live.call.end
        if end is None:
            return
        tool, server = self._name(notes)
        about = {"gen_ai.tool.name": tool, "afoot.server": server}
        error = error_type(end)
        ended = {**about, "afoot.outcome": end.outcome, **({"error.type": error} if error else {})}
        operation = {**ended, "mcp.method.name": METHOD}
        self._duration.record(end.at - call.opened.at, operation)
        if server not in BUILT_IN_SERVERS and notes.tries:
            self._upstream.record(end.at - notes.tries[-1].began, operation)
        if notes.first is not None and notes.tries:
            self._first.record(max(0.0, notes.first - notes.tries[0].began), ended)
            self._gap.record(notes.gap_s, ended)
        if end.cpu_s:
            self._cpu.record(end.cpu_s, ended)
        for kind, waited_s in notes.waits:
            self._wait.record(waited_s, {**about, "afoot.question.kind": kind})
        requests = notes.live.caller_requests
        counts = (
            (self._stalls, notes.stalls),
            (self._reports, call.readings + call.contents),
            (self._repaired, 0 if requests is None else requests.series.repaired),
            (self._dropped, notes.late),
        )
        for counter, count in counts:
            if count:
                counter.add(count, about)

    def _name(self, notes: CallNotes) -> tuple[str, str]:
        named = notes.live.call.opened.tool, notes.live.call.opened.server
        if named not in self._tools:
            if len(self._tools) >= MAX_TOOLS:
                return OTHER, OTHER
            self._tools.add(named)
        return named

    def _over(self, _: CallbackOptions) -> Iterable[Observation]:
        for caller, count in list(self._refused.items()):
            yield Observation(count, {"afoot.caller": caller})

    def _observe(self, _: CallbackOptions) -> Iterable[Observation]:
        """Called from a thread of the SDK: a copy is made in one go."""
        for (tool, server), count in list(self._active.items()):
            yield Observation(count, {"gen_ai.tool.name": tool, "afoot.server": server})
