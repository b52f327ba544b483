"""`CallFigures` computes the figures that a call adds, for OpenTelemetry and for `/metrics`.

Tools and servers are told apart for up to MAX_TOOLS tools, and there is a bound for kinds of errors: nobody
makes series without end.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from afoot.config.tables import BUILT_IN_SERVERS
from afoot.core.facts import Finished
from afoot.observe.call_notes import CallNotes

METHOD: Final = "tools/call"
MAX_TOOLS: Final = 300  # pages and plugins bring new tools without end; those beyond are counted together
MAX_ERROR_TYPES: Final = 50  # the category of an error is its author's own word
OTHER: Final = "_OTHER"
TOOL_ERROR: Final = "tool_error"
# The buckets of the OpenTelemetry conventions, and further ones: calls here may take an hour.
BUCKETS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 900, 3600)


class Instrument(NamedTuple):
    """One figure, as the conventions of OpenTelemetry name it."""

    name: str
    description: str
    unit: str = "s"
    kind: Literal["histogram", "counter", "gauge"] = "histogram"


class Measurement(NamedTuple):
    """A value that is added to an instrument, or the value that it has, and its attributes."""

    instrument: Instrument
    value: float
    attributes: dict[str, str]


DURATION: Final = Instrument("mcp.server.operation.duration", "From a request to its result.")
UPSTREAM: Final = Instrument("mcp.client.operation.duration", "From a request to a server to its result.")
FIRST: Final = Instrument("afoot.call.first_report", "From the start of a tool to its first report.")
GAP: Final = Instrument("afoot.call.longest_gap", "The longest that a tool which reports was silent.")
CPU: Final = Instrument("afoot.call.cpu", "Processor time of a tool in a process of its own.")
WAIT: Final = Instrument("afoot.question.wait", "How long a question was open.")
STALLS: Final = Instrument("afoot.call.stalls", "Times a call advanced no more.", "{stall}", "counter")
REPORTS: Final = Instrument("afoot.reports", "Reports of tools.", "{report}", "counter")
REPAIRED: Final = Instrument(
    "afoot.reports.repaired", "Reports whose numbers had to be made to rise.", "{report}", "counter"
)
DROPPED: Final = Instrument(
    "afoot.reports.dropped", "Reports that came after the end.", "{report}", "counter"
)
ACTIVE: Final = Instrument("afoot.calls.active", "Calls that are not over.", "{call}", "gauge")
REFUSED: Final = Instrument(
    "afoot.quota.refused", "Calls over the quota of their caller.", "{call}", "counter"
)

ADDED: Final = (DURATION, UPSTREAM, FIRST, GAP, CPU, WAIT, STALLS, REPORTS, REPAIRED, DROPPED)


class CallFigures:
    """The figures of one gateway's calls: the values that ended calls add, and the counts of live calls."""

    def __init__(self, refused: Mapping[str, int] = MappingProxyType({})) -> None:
        """`refused`: by caller, how many calls were over its quota; those calls have no notes."""
        self._refused = refused
        self._tools: set[tuple[str, str]] = set()
        self._error_types: set[str] = set()
        self._active: Counter[tuple[str, str]] = Counter()

    def opened(self, notes: CallNotes) -> None:
        """Count a call that began."""
        self._active[self._name(notes)] += 1

    def finished(self, notes: CallNotes) -> None:
        """Note that a call is over for its caller: it is no longer active."""
        self._active[self._name(notes)] -= 1

    def ended(self, notes: CallNotes) -> Iterator[Measurement]:
        """The values that a call adds of which nothing more comes."""
        call, end = notes.live.call, notes.live.call.end
        if end is None:
            return
        tool, server = self._name(notes)
        about = _about(tool, server)
        error = self._error_type(end)
        ended = {**about, "afoot.outcome": end.outcome, **({"error.type": error} if error else {})}
        operation = {**ended, "mcp.method.name": METHOD}
        yield Measurement(DURATION, end.at - call.opened.at, operation)
        if server not in BUILT_IN_SERVERS and notes.tries:
            yield Measurement(UPSTREAM, end.at - notes.tries[-1].began, operation)
        if notes.first is not None and notes.tries:
            yield Measurement(FIRST, max(0.0, notes.first - notes.tries[0].began), ended)
            yield Measurement(GAP, notes.gap_s, ended)
        if end.cpu_s:
            yield Measurement(CPU, end.cpu_s, ended)
        for kind, waited_s in notes.waits:
            yield Measurement(WAIT, waited_s, {**about, "afoot.question.kind": kind})
        requests = notes.live.caller_requests
        counts = (
            (STALLS, notes.stalls),
            (REPORTS, call.readings + call.contents),
            (REPAIRED, 0 if requests is None else requests.series.repaired),
            (DROPPED, notes.late),
        )
        for instrument, count in counts:
            if count:
                yield Measurement(instrument, count, about)

    def active(self) -> Iterator[Measurement]:
        """The calls that are not over. It may be read from any thread: a copy is made in one go."""
        for (tool, server), count in list(self._active.items()):
            yield Measurement(ACTIVE, count, _about(tool, server))

    def refused(self) -> Iterator[Measurement]:
        """The calls that were over a quota, since the start."""
        for caller, count in list(self._refused.items()):
            yield Measurement(REFUSED, count, {"afoot.caller": caller})

    def _error_type(self, end: Finished) -> str:
        error = error_type(end)
        if error not in self._error_types:
            if len(self._error_types) >= MAX_ERROR_TYPES:
                return OTHER
            self._error_types.add(error)
        return error

    def _name(self, notes: CallNotes) -> tuple[str, str]:
        named = notes.live.call.opened.tool, notes.live.call.opened.server
        if named not in self._tools:
            if len(self._tools) >= MAX_TOOLS:
                return OTHER, OTHER
            self._tools.add(named)
        return named


def error_type(end: Finished) -> str:
    """The kind of failure of an end, one of a few; empty: none."""
    if end.outcome == "ok":
        return ""
    if end.outcome != "failed":
        return end.outcome
    if end.result is not None and end.result.is_error:
        return TOOL_ERROR
    return end.failure.category if end.failure is not None else TOOL_ERROR


def _about(tool: str, server: str) -> dict[str, str]:
    return {"gen_ai.tool.name": tool, "afoot.server": server}
