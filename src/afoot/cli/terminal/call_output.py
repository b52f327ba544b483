"""`choose_output` picks how `afoot call` and `afoot watch CALL` print a call: a live bar, lines, or JSON.

`BarOutput` is for a terminal, `LineOutput` for a pipe, `JsonOutput` for programs.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, Protocol

import msgspec

from afoot.cli.terminal.ansi import LiveRegion, is_terminal, terminal_width, to_ansi
from afoot.cli.terminal.call_clocks import GatewayClock
from afoot.cli.terminal.call_log import outcome_lines
from afoot.cli.terminal.call_words import STATES, state_of_outcome
from afoot.cli.terminal.fact_text import compact_json, describe_fact, reading_text, result_texts
from afoot.cli.terminal.live.call_rows import StyledLine, choose_columns, single_call_line
from afoot.cli.terminal.live.call_table import tree_rows
from afoot.cli.terminal.live.live_state import CallNode, LiveSnapshot, LiveState
from afoot.cli.terminal.text import clean, escape_json, short_id, short_question_id, truncate
from afoot.core.call import Call
from afoot.core.facts import (
    Admitted,
    Amended,
    Answered,
    Asked,
    CancelRequested,
    Fact,
    Finished,
    Hindered,
    Interrupted,
    Logged,
    Opened,
    Reading,
    Redefined,
    Released,
    Reported,
    Started,
)
from afoot.observe.eta import Eta
from afoot.serve.api.views import call_view, encode_json, full_call_view

READING_PERIOD_S = 1.0  # between two readings in a pipe
TIMER_NAMES = (
    "idle",
    "ceiling",
    "answer",
    "queue",
)  # timers of the engine: they cancel and end a call in one step
PIPE_COLUMNS = 200  # a line with arguments is cut here in a pipe
CHILD_LINES = 6  # the most lines for child calls


class CallOutput(Protocol):
    """Shows one call. The result goes to stdout, everything else to stderr.

    Outputs that are not animated inherit the methods that draw: these do nothing.
    """

    is_live: bool  # whether it is animated, and shows child calls

    def fact(self, call: Call, fact: Fact) -> None: ...

    def reading(self, call: Call, reading: Reading, eta: Eta | None = None) -> None: ...

    def say(self, text: str) -> None: ...

    def show_snapshot(self, found: LiveSnapshot) -> None:
        """Take in all live calls, with their estimated ends."""
        return

    def tick(self) -> None:
        """Draw again, if that is due."""
        return

    def close(self) -> None:
        """Remove the drawing."""
        return


def choose_output(as_json: bool) -> CallOutput:
    """The output that fits stderr and the flag --json."""
    if as_json:
        return JsonOutput()
    return BarOutput() if is_terminal(sys.stderr) else LineOutput()


@contextmanager
def closing_output(output: CallOutput) -> Iterator[CallOutput]:
    """The output, closed at the end whatever happens."""
    try:
        yield output
    finally:
        output.close()


class JsonOutput(CallOutput):
    """Prints one JSON object per line: the call after each event, and the event itself."""

    is_live = False

    def fact(self, call: Call, fact: Fact) -> None:
        if not isinstance(fact, Released):
            shown = (
                full_call_view(call, [], fact.at) if isinstance(fact, Finished) else call_view(call, fact.at)
            )
            kind = str(fact.__struct_config__.tag)
            self._print({**_to_object(shown), "event": kind, "fact": _to_object(fact)})

    def reading(self, call: Call, reading: Reading, eta: Eta | None = None) -> None:
        shown = msgspec.structs.replace(call_view(call, reading.at), eta=eta)
        self._print({**_to_object(shown), "event": "reading"})

    def say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def _print(self, thing: dict[str, Any]) -> None:
        print(escape_json(encode_json(thing).decode()), flush=True)


class LineOutput(CallOutput):
    """Prints plain lines: the important facts, at most one reading per second, and always the last one."""

    is_live = False

    def __init__(self) -> None:
        self._next = 0.0
        self._held_reading: Reading | None = None

    def fact(self, call: Call, fact: Fact) -> None:
        self._flush()
        for text in fact_lines(call, fact):
            self.say(text)
        if isinstance(fact, Finished):
            print_result(fact)

    def reading(self, call: Call, reading: Reading, eta: Eta | None = None) -> None:
        self._held_reading = reading
        now = time.monotonic()
        if now >= self._next:
            self._next = now + READING_PERIOD_S
            self._flush()

    def say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def _flush(self) -> None:
        held = self._held_reading
        self._held_reading = None
        if held is not None and reading_text(held):
            self.say(reading_text(held))


class BarOutput:
    """Draws a live bar with the child calls at the bottom of the terminal, and prints lines above it."""

    is_live = True

    def __init__(self) -> None:
        self._region = LiveRegion(sys.stderr)
        self._node: CallNode | None = None
        self._is_hidden = False  # while a person types
        self._clock = GatewayClock(time.time() - time.monotonic())

    def fact(self, call: Call, fact: Fact) -> None:
        if isinstance(fact, Finished):
            self.close()
        for number, text in enumerate(fact_lines(call, fact)):
            mark = _state_mark(fact) if not number else []
            self._region.say(f"{to_ansi(mark)}{text}")
        if isinstance(fact, Finished):
            print_result(fact)
            return
        self._node = self._node or CallNode(call)
        self._is_hidden = False
        self._draw()

    def reading(self, call: Call, reading: Reading, eta: Eta | None = None) -> None:
        if self._node is not None:
            self._node.eta = eta
            self._node.heard = max(self._node.heard, reading.at)
            self._node.stalled = False
        self.tick()

    def show_snapshot(self, found: LiveSnapshot) -> None:
        live_state = LiveState()
        live_state.load_snapshot(found)
        self._clock.hear(found.now, time.monotonic())
        node = self._node
        if node is not None and (seen := live_state.calls.get(node.call.id)) is not None:
            # The call's own stream is newer than the snapshot, but has no heartbeats.
            seen.heard = max(seen.call.heard, node.heard)
            seen.call = node.call
            self._node = seen

    def tick(self) -> None:
        if self._region.is_due():
            self._draw()

    def say(self, text: str) -> None:
        self._region.say(text)

    def close(self) -> None:
        """Remove the bar: the call has ended, or a person is to type."""
        self._is_hidden = True
        self._region.clear()

    def _draw(self) -> None:
        if self._node is not None and not self._is_hidden:
            self._region.draw(list(self._lines(self._node)))

    def _lines(self, node: CallNode) -> Iterator[StyledLine]:
        now = self._clock.now(time.monotonic())
        width = self._region.width()
        yield single_call_line(node, now, width)
        rows = islice(tree_rows(node, now, choose_columns(width)), 1, None)
        yield from islice((line for row in rows for line in row.lines), CHILD_LINES)


def fact_lines(call: Call, fact: Fact) -> Iterator[str]:
    """The lines about a fact for a person who follows one call."""
    match fact:
        case Opened():
            yield _cut_to_width(
                f"call {short_id(call.id)}: {clean(fact.tool)} {compact_json(fact.arguments)}"
            )
        case Admitted():
            yield clean(fact.what)
        case Amended():
            yield _cut_to_width(f"arguments changed by a hook: {compact_json(fact.arguments)}")
        case Started() if fact.attempt > 1:
            yield f"started again, {describe_fact(fact)[1]}"
        case Interrupted():
            yield f"interrupted: {describe_fact(fact)[1]}"
        case Redefined():
            yield describe_fact(fact)[1]
        case Reported():
            yield describe_fact(fact)[1]
        case Logged():
            yield f"| {describe_fact(fact)[1]}"
        case Hindered() if fact.by:
            yield describe_fact(fact)[1]
        case Asked():
            question = fact.question
            yield f"question {short_question_id(question.id)}: {clean(question.message) or question.kind}"
        case Answered():
            yield f"answered: {describe_fact(fact)[1]}"
        case CancelRequested() if fact.by not in TIMER_NAMES:
            yield f"cancelling: {clean(fact.reason)}"
        case Finished():
            yield from outcome_lines(call, fact)
        case _:
            return


def print_result(end: Finished) -> None:
    """Print the result to stdout."""
    if end.result is not None:
        for text in result_texts(end.result):
            print(text)
        sys.stdout.flush()


def _state_mark(fact: Fact) -> StyledLine:
    """The shape before the line of a question or an end."""
    if isinstance(fact, Asked):
        look = STATES["waiting"]
    elif isinstance(fact, Finished):
        look = STATES[state_of_outcome(fact.outcome)]
    else:
        return []
    return [(f"{look.shape} ", look.style)]


def _cut_to_width(text: str) -> str:
    """A text of any length as one line; `afoot log` prints the whole."""
    return truncate(text, terminal_width(sys.stderr) if is_terminal(sys.stderr) else PIPE_COLUMNS)


def _to_object(thing: object) -> dict[str, Any]:
    return msgspec.json.decode(encode_json(thing))
