"""Everything that lives, on one screen: as bars in a terminal, as lines in a pipe."""

import json
import time
from typing import Any, Protocol

import msgspec

from afoot.cli.calls import width
from afoot.core.call import Call, evolve, note
from afoot.core.facts import (
    Answered,
    Asked,
    CancelRequested,
    Entry,
    Finished,
    Opened,
    Reading,
    Released,
    Reported,
)
from afoot.observe import terminal
from afoot.observe.eta import Eta
from afoot.wire.sse import Event

EVERY_S = 1.0


class Seen(msgspec.Struct, frozen=True):
    """The newest reading of a call."""

    call: str
    reading: Reading | None
    readings: int = 0
    eta: Eta | None = None


class Changes(msgspec.Struct, frozen=True):
    """One frame of the stream."""

    facts: list[Entry] = []
    readings: list[Seen] = []


class View(Protocol):
    """Where everything is shown."""

    def known(self, calls: list[dict[str, Any]]) -> None: ...

    def fact(self, entry: Entry, tool: str) -> None: ...

    def reading(self, seen: Seen, tool: str) -> None: ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def close(self) -> None: ...


class Wall:
    """Everything that is known of what lives, and where it is shown."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.waiting: dict[str, None] = {}  # approvals that the operator is asked for
        self._names: dict[str, str] = {}
        self.pause, self.resume = view.pause, view.resume

    def track(self, event: Event) -> None:
        """Know which approvals are open."""
        if event.event == "snapshot":
            found: list[dict[str, Any]] = json.loads(event.data)["questions"]
            asked = [one["id"] for one in found if one["kind"] == "approval" and one["to"] != "caller"]
            self.waiting = dict.fromkeys(asked)
        elif event.event == "changes":
            for entry in msgspec.json.decode(event.data, type=Changes).facts:
                self._track(entry)

    def _track(self, entry: Entry) -> None:
        match entry.fact:
            case Asked(question=one) if one.kind == "approval" and one.to != "caller" and not one.below:
                self.waiting[one.id] = None
            case Answered(question=name):
                self.waiting.pop(name, None)
            case Finished():
                over = [one for one in self.waiting if one.startswith(f"{entry.call}.")]
                self.waiting = {one: None for one in self.waiting if one not in over}
            case _:
                pass

    def show(self, event: Event) -> None:
        """Show what is new."""
        if event.event == "snapshot":
            found: list[dict[str, Any]] = json.loads(event.data)["calls"]
            self._names = {call["id"]: call["tool"] for call in found}
            self.view.known(found)
        elif event.event == "changes":
            _changed(msgspec.json.decode(event.data, type=Changes), self._names, self.view)


def _changed(changes: Changes, names: dict[str, str], view: View) -> None:
    for entry in changes.facts:
        if isinstance(entry.fact, Opened):
            names[entry.call] = entry.fact.tool
        if isinstance(entry.fact, Finished):
            # Its last reading stands in the same frame and belongs before the end.
            for seen in changes.readings:
                if seen.call == entry.call:
                    view.reading(seen, names.get(entry.call, "?"))
        view.fact(entry, names.get(entry.call, "?"))
    ended = {entry.call for entry in changes.facts if isinstance(entry.fact, Finished)}
    for seen in changes.readings:
        if seen.call not in ended:
            view.reading(seen, names.get(seen.call, "?"))
    for entry in changes.facts:
        if isinstance(entry.fact, Released):
            names.pop(entry.call, None)


def _message(call: dict[str, Any]) -> str:
    asked = call["questions"]
    return f"asks: {asked[0]['message']}" if asked else call["message"] or ""


class Lines:
    """One line a fact, and a reading a second a call."""

    def __init__(self) -> None:
        self._next: dict[str, float] = {}

    def known(self, calls: list[dict[str, Any]]) -> None:
        for call in calls:
            state = "waiting" if call["waiting"] else call["state"]
            amount = terminal.amount(call["progress"], call["total"])
            rest = " ".join(part for part in (amount, _message(call)) if part)
            self._say(call["opened"], call["id"], call["tool"], f"{state:<9} {rest}")

    def fact(self, entry: Entry, tool: str) -> None:
        if not isinstance(entry.fact, Released):
            word, rest = terminal.told(entry.fact)
            self._say(entry.fact.at, entry.call, tool, f"{word:<9} {rest}")

    def reading(self, seen: Seen, tool: str) -> None:
        now = time.monotonic()
        if seen.reading is not None and now >= self._next.get(seen.call, 0.0):
            self._next[seen.call] = now + EVERY_S
            self._say(seen.reading.at, seen.call, tool, f"{'reading':<9} {terminal.reading(seen.reading)}")

    def pause(self) -> None:
        pass

    def resume(self) -> None:
        pass

    def close(self) -> None:
        pass

    def _say(self, at: float, call: str, tool: str, text: str) -> None:
        line = f"{terminal.at(at)} {terminal.short(call)} {terminal.name(tool)} {text}"
        print(line.rstrip()[: width()], flush=True)


class Bars:
    """A bar for every call that lives, and what happened above them."""

    def __init__(self) -> None:
        from rich.console import Console

        from afoot.cli.screen import bars

        self._console = Console(highlight=False, markup=False)
        self._progress = bars(self._console)
        self._tasks: dict[str, Any] = {}
        self._progress.start()
        self._calls: dict[str, Call] = {}

    def known(self, calls: list[dict[str, Any]]) -> None:
        for call in list(self._tasks):
            self._drop(call)
        for call in calls:
            opened = Opened(call["opened"], call["tool"], call["server"], call["caller"], msgspec.Raw(b"{}"))
            reading = Reading(call["opened"], call["progress"], call["total"], _message(call))
            self._add(Call(call["id"], opened), time.time() - call["elapsed_s"])
            eta = call["eta"] and msgspec.convert(call["eta"], Eta)
            self.reading(Seen(call["id"], reading, eta=eta), call["tool"])

    def fact(self, entry: Entry, tool: str) -> None:
        fact = entry.fact
        if isinstance(fact, Opened):
            self._add(Call(entry.call, fact), fact.at)
        elif (call := self._calls.get(entry.call)) is not None and isinstance(
            fact, Reported | Asked | Answered | CancelRequested
        ):
            evolve(call, fact)
            self._update(call)
        if isinstance(fact, Finished):
            self._drop(entry.call)
        if not isinstance(fact, Released):
            word, rest = terminal.told(fact)
            who = f"{terminal.at(fact.at)} {terminal.short(entry.call)} {terminal.name(tool)}"
            self._console.print(terminal.cut(f"{who} {word:<9} {rest}", self._console.width))

    def reading(self, seen: Seen, tool: str) -> None:
        call = self._calls.get(seen.call)
        if call is not None:
            if seen.reading is not None:
                note(call, seen.reading)
            self._update(call, seen.eta)

    def pause(self) -> None:
        """Take the bars away for a person who is to type."""
        self._progress.stop()

    def resume(self) -> None:
        self._progress.start()

    def close(self) -> None:
        self._progress.stop()

    def _add(self, call: Call, since: float) -> None:
        from afoot.cli.screen import shown

        name = f"{terminal.short(call.id)} {terminal.name(call.opened.tool)}"
        self._calls[call.id] = call
        task = self._tasks[call.id] = self._progress.add_task(name, **shown(call))
        self._progress.tasks[-1].start_time = self._progress.get_time() - max(0.0, time.time() - since)
        self._progress.update(task)

    def _update(self, call: Call, eta: Eta | None = None) -> None:
        from afoot.cli.screen import shown

        self._progress.update(self._tasks[call.id], **shown(call, eta))

    def _drop(self, call: str) -> None:
        self._calls.pop(call, None)
        if (task := self._tasks.pop(call, None)) is not None:
            self._progress.remove_task(task)
