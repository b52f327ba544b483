"""A call with its notes, made of facts and readings as a real one is."""

from msgspec import Raw

from afoot.core.call import Call, ProgressSeries, evolve
from afoot.core.facts import Fact, Opened, Reading, Trace
from afoot.core.ports import OpeningRequest, Tool
from afoot.engine.live_call import LiveCall
from afoot.observe.call_notes import CallNotes

ID = "1a1e2969335b946e47c2cec266cb6eda8770fa75dc0"


class Requests:
    """The requests of a call's caller, as far as telemetry looks at them."""

    def __init__(self, opened_by: OpeningRequest | None = None, repaired: int = 0) -> None:
        self.can_ask = False
        self.is_followed = False
        self.opened_by = opened_by
        self.series = ProgressSeries(repaired=repaired)


class Noted:
    """A call, and what telemetry notes of it."""

    def __init__(self, server: str = "local", trace: Trace | None = None, **opened: object) -> None:
        facts = {"caller": "local", "arguments": Raw(b"{}"), **opened}
        first = Opened(100.0, "export", server, trace=trace, **facts)  # type: ignore[arg-type]
        self.call = Call(ID, first)
        self.live = LiveCall(self.call, Tool("export", server, Raw(b"{}"), inner="inner_export"))
        self.notes = CallNotes(self.live)

    def facts(self, *facts: Fact) -> "Noted":
        """These happened."""
        for fact in facts:
            evolve(self.call, fact)
            self.notes.take(fact)
        return self

    def reads(self, *readings: tuple[float, float | None, float | None]) -> "Noted":
        """These were reported: when, how much, of how much."""
        for at, progress, total in readings:
            self.call.latest = Reading(at, progress, total)
            self.call.readings += 1
            self.notes.on_reading(at)
        return self

    def named(self) -> list[str]:
        """The names of its milestones."""
        return [one.name for one in self.notes.milestones]
