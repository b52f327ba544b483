"""A call with its notes, made of facts and readings as a real one is."""

from msgspec import Raw

from afoot.core.call import Call, evolve
from afoot.core.facts import Fact, Opened, Reading, Trace
from afoot.core.ports import Tool
from afoot.engine.live import Live
from afoot.observe.pulse import Pulse

ID = "1a1e2969335b946e47c2cec266cb6eda8770fa75dc0"


class Noted:
    """A call, and what telemetry notes of it."""

    def __init__(self, server: str = "local", trace: Trace | None = None, **opened: object) -> None:
        first = Opened(100.0, "export", server, "local", Raw(b"{}"), trace=trace, **opened)  # type: ignore[arg-type]
        self.call = Call(ID, first)
        self.live = Live(self.call, Tool("export", server, Raw(b"{}"), inner="inner_export"))
        self.pulse = Pulse(self.live)

    def facts(self, *facts: Fact) -> "Noted":
        """These happened."""
        for fact in facts:
            evolve(self.call, fact)
            self.pulse.take(fact)
        return self

    def reads(self, *readings: tuple[float, float | None, float | None]) -> "Noted":
        """These were reported: when, how much, of how much."""
        for at, progress, total in readings:
            self.call.latest = Reading(at, progress, total)
            self.call.readings += 1
            self.pulse.notice(at)
        return self

    def named(self) -> list[str]:
        """The names of its milestones."""
        return [one.name for one in self.pulse.milestones]
