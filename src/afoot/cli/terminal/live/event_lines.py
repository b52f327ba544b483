"""`EventLines` prints the events of all calls as lines, for a pipe or a terminal without a movable cursor."""

import time

import msgspec

from afoot.cli.terminal import fact_text
from afoot.cli.terminal import text as terminal
from afoot.cli.terminal.listing import output_width
from afoot.cli.terminal.live.live_state import LiveChanges, LiveSnapshot, ReadingUpdate, SnapshotCall
from afoot.core.facts import Entry, Finished, Opened, Released
from afoot.wire.framing import ServerSentEvent

READING_PERIOD_S = 1.0  # between two readings of one call


class EventLines:
    """Prints each fact as a line, and at most one reading per second and call."""

    def __init__(self) -> None:
        self._next: dict[str, float] = {}
        self._names: dict[str, str] = {}

    def show(self, event: ServerSentEvent) -> None:
        """Print the lines of one event."""
        if event.event == "snapshot":
            found = msgspec.json.decode(event.data, type=LiveSnapshot).calls
            self._names = {call.id: call.tool for call in found}
            for call in found:
                self._show_known(call)
        elif event.event == "changes":
            self._show_changes(msgspec.json.decode(event.data, type=LiveChanges))

    def _show_known(self, call: SnapshotCall) -> None:
        state = "waiting" if call.questions else call.state
        message = f"asks: {call.questions[0].message}" if call.questions else call.message or ""
        number = terminal.format_progress(call.progress, call.total, call.source)
        rest = " ".join(part for part in (number, message) if part)
        self._print(call.opened, call.id, f"{state:<9} {rest}")

    def _show_changes(self, changes: LiveChanges) -> None:
        """Print one frame; a call's last reading comes in the frame of its end and is printed before it."""
        ended = {entry.call for entry in changes.facts if isinstance(entry.fact, Finished)}
        for entry in changes.facts:
            if isinstance(entry.fact, Opened):
                self._names[entry.call] = entry.fact.tool
            if isinstance(entry.fact, Finished):
                for seen in changes.readings:
                    if seen.call == entry.call:
                        self._show_reading(seen)
            self._show_fact(entry)
        for seen in changes.readings:
            if seen.call not in ended:
                self._show_reading(seen)

    def _show_fact(self, entry: Entry) -> None:
        if isinstance(entry.fact, Released):
            self._names.pop(entry.call, None)
            self._next.pop(entry.call, None)
            return
        word, rest = fact_text.describe_fact(entry.fact)
        self._print(entry.fact.at, entry.call, f"{word:<9} {rest}")

    def _show_reading(self, seen: ReadingUpdate) -> None:
        now = time.monotonic()
        if seen.reading is not None and now >= self._next.get(seen.call, 0.0):
            self._next[seen.call] = now + READING_PERIOD_S
            self._print(seen.reading.at, seen.call, f"{'reading':<9} {fact_text.reading_text(seen.reading)}")

    def _print(self, at: float, call: str, text: str) -> None:
        tool = terminal.short_tool_name(self._names.get(call, "?"))
        print(
            terminal.truncate(
                f"{terminal.format_time(at)} {terminal.short_id(call)} {tool} {text}".rstrip(), output_width()
            ),
            flush=True,
        )
