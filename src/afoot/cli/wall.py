"""Everything that happens as lines, for a pipe or a terminal without a cursor to move."""

import time

import msgspec

from afoot.cli.calls import width
from afoot.core.facts import Entry, Finished, Opened, Released
from afoot.observe import terminal
from afoot.observe.scene import Changes, Living, Seen, Snapshot
from afoot.wire.sse import Event

EVERY_S = 1.0


class Lines:
    """One line a fact, and a reading a second a call."""

    def __init__(self) -> None:
        self._next: dict[str, float] = {}
        self._names: dict[str, str] = {}

    def show(self, event: Event) -> None:
        """Show what is new."""
        if event.event == "snapshot":
            found = msgspec.json.decode(event.data, type=Snapshot).calls
            self._names = {call.id: call.tool for call in found}
            for call in found:
                self._known(call)
        elif event.event == "changes":
            self._changed(msgspec.json.decode(event.data, type=Changes))

    def _known(self, call: Living) -> None:
        state = "waiting" if call.questions else call.state
        message = f"asks: {call.questions[0].message}" if call.questions else call.message or ""
        rest = " ".join(part for part in (terminal.amount(call.progress, call.total), message) if part)
        self._say(call.opened, call.id, f"{state:<9} {rest}")

    def _changed(self, changes: Changes) -> None:
        """A call's last reading stands in the frame of its end, and belongs before it."""
        ended = {entry.call for entry in changes.facts if isinstance(entry.fact, Finished)}
        for entry in changes.facts:
            if isinstance(entry.fact, Opened):
                self._names[entry.call] = entry.fact.tool
            if isinstance(entry.fact, Finished):
                for seen in changes.readings:
                    if seen.call == entry.call:
                        self._reading(seen)
            self._fact(entry)
        for seen in changes.readings:
            if seen.call not in ended:
                self._reading(seen)

    def _fact(self, entry: Entry) -> None:
        if isinstance(entry.fact, Released):
            self._names.pop(entry.call, None)
            self._next.pop(entry.call, None)
            return
        word, rest = terminal.told(entry.fact)
        self._say(entry.fact.at, entry.call, f"{word:<9} {rest}")

    def _reading(self, seen: Seen) -> None:
        now = time.monotonic()
        if seen.reading is not None and now >= self._next.get(seen.call, 0.0):
            self._next[seen.call] = now + EVERY_S
            self._say(seen.reading.at, seen.call, f"{'reading':<9} {terminal.reading(seen.reading)}")

    def _say(self, at: float, call: str, text: str) -> None:
        tool = terminal.name(self._names.get(call, "?"))
        print(
            terminal.cut(f"{terminal.at(at)} {terminal.short(call)} {tool} {text}".rstrip(), width()),
            flush=True,
        )
