"""How a call is shown while it runs: a live bar in a terminal, lines in a pipe, JSON for programs."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, Protocol

import msgspec

from afoot.cli.canvas import Region, columns_of, is_terminal, painted
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
    Logged,
    Opened,
    Reading,
    Released,
    Reported,
    Started,
)
from afoot.observe.eta import Eta
from afoot.observe.row import KINDS, Line, alone, columns, kind_of
from afoot.observe.scene import Node, Scene, Snapshot
from afoot.observe.story import ended
from afoot.observe.table import tree
from afoot.observe.terminal import (
    clean,
    content,
    cut,
    escaped,
    plain,
    reading,
    short,
    short_question,
    told,
)
from afoot.serve.view import encode, full, view

EVERY_S = 1.0  # between two lines of readings in a pipe
CLOCKS = ("idle", "ceiling", "answer", "queue")  # they end a call in the same breath
WIDE = 200  # columns of a line in a pipe that says what was given
BELOW = 6  # lines for the calls below one


class Screen(Protocol):
    """Shows one call. Results go to stdout, everything else to stderr."""

    is_live: bool  # whether it moves by itself, and shows the calls below

    def fact(self, call: Call, fact: Fact) -> None: ...

    def reading(self, call: Call, reading: Reading, eta: Eta | None = None) -> None: ...

    def around(self, found: Snapshot) -> None:
        """What else lives, and what is expected of it."""
        ...

    def tick(self) -> None: ...

    def say(self, text: str) -> None: ...

    def close(self) -> None: ...


def screen(as_json: bool) -> Screen:
    """The screen that fits where we are."""
    if as_json:
        return Lines()
    return Bar() if is_terminal(sys.stderr) else Plain()


class Lines:
    """One JSON object a line: the call after each event, and what the event was."""

    is_live = False

    def fact(self, call: Call, fact: Fact) -> None:
        if not isinstance(fact, Released):
            shown = full(call, [], fact.at) if isinstance(fact, Finished) else view(call, fact.at)
            kind = str(fact.__struct_config__.tag)
            self._print({**_plain(shown), "event": kind, "fact": _plain(fact)})

    def reading(self, call: Call, reading: Reading, eta: Eta | None = None) -> None:
        shown = msgspec.structs.replace(view(call, reading.at), eta=eta)
        self._print({**_plain(shown), "event": "reading"})

    def around(self, found: Snapshot) -> None:
        pass

    def tick(self) -> None:
        pass

    def say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def close(self) -> None:
        pass

    def _print(self, thing: dict[str, Any]) -> None:
        print(escaped(encode(thing).decode()), flush=True)


class Plain:
    """Plain lines: every fact that matters, and a reading a second; the last one always."""

    is_live = False

    def __init__(self) -> None:
        self._next = 0.0
        self._held: Reading | None = None

    def fact(self, call: Call, fact: Fact) -> None:
        self._flush()
        for text in lines(call, fact):
            self.say(text)
        if isinstance(fact, Finished):
            show_result(fact)

    def reading(self, call: Call, reading: Reading, eta: Eta | None = None) -> None:
        self._held = reading
        now = time.monotonic()
        if now >= self._next:
            self._next = now + EVERY_S
            self._flush()

    def around(self, found: Snapshot) -> None:
        pass

    def tick(self) -> None:
        pass

    def say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def close(self) -> None:
        pass

    def _flush(self) -> None:
        held, self._held = self._held, None
        if held is not None and reading(held):
            self.say(reading(held))


class Bar:
    """A live bar at the bottom of the terminal, the calls below it, lines above."""

    is_live = True

    def __init__(self) -> None:
        self._region = Region(sys.stderr)
        self._node: Node | None = None
        self._is_hidden = False  # while a person types
        self._clock = 0.0  # the gateway's clock less ours

    def fact(self, call: Call, fact: Fact) -> None:
        if isinstance(fact, Finished):
            self.close()
        for number, text in enumerate(lines(call, fact)):
            mark = _marked(call, fact) if not number else []
            self._region.say(f"{painted(mark)}{text}")
        if isinstance(fact, Finished):
            show_result(fact)
            return
        self._node = self._node or Node(call)
        self._is_hidden = False
        self._draw()

    def reading(self, call: Call, reading: Reading, eta: Eta | None = None) -> None:
        if self._node is not None:
            self._node.eta, self._node.said, self._node.stalled = eta, reading.at, False
        self.tick()

    def around(self, found: Snapshot) -> None:
        scene = Scene()
        scene.begin(found)
        self._clock = found.now - time.time()
        node = self._node
        if node is not None and (seen := scene.calls.get(node.call.id)) is not None:
            seen.call = node.call  # its own stream knows it better
            self._node = seen

    def tick(self) -> None:
        if self._region.is_due():
            self._draw()

    def say(self, text: str) -> None:
        self._region.say(text)

    def close(self) -> None:
        """Take the bar away, for the end or for a person who is to type."""
        self._is_hidden = True
        self._region.clear()

    def _draw(self) -> None:
        if self._node is not None and not self._is_hidden:
            self._region.draw(list(self._lines(self._node)))

    def _lines(self, node: Node) -> Iterator[Line]:
        now, wide = time.time() + self._clock, self._region.wide()
        yield alone(node, now, wide)
        for line, _ in islice(tree(node, now, columns(wide)), 1, 1 + BELOW):
            yield line


def _marked(call: Call, fact: Fact) -> Line:
    """The shape before a line that matters most."""
    kind = "waiting" if isinstance(fact, Asked) else kind_of(call) if isinstance(fact, Finished) else ""
    return [(f"{KINDS[kind][0]} ", KINDS[kind][1])] if kind else []


def lines(call: Call, fact: Fact) -> Iterator[str]:
    """What is said about a fact to whoever follows one call."""
    match fact:
        case Opened():
            yield _in_a_line(f"call {short(call.id)}: {clean(fact.tool)} {plain(fact.arguments)}")
        case Admitted():
            yield clean(fact.what)
        case Amended():
            yield _in_a_line(f"arguments changed by a hook: {plain(fact.arguments)}")
        case Started() if fact.attempt > 1:
            yield f"started again, {told(fact)[1]}"
        case Reported():
            yield told(fact)[1]
        case Logged():
            yield f"| {told(fact)[1]}"
        case Hindered() if fact.by:
            yield told(fact)[1]
        case Asked():
            question = fact.question
            yield f"question {short_question(question.id)}: {clean(question.message) or question.kind}"
        case Answered():
            yield f"answered: {told(fact)[1]}"
        case CancelRequested() if fact.by not in CLOCKS:
            yield f"cancelling: {clean(fact.reason)}"
        case Finished():
            yield from ended(call, fact)
        case _:
            return


def _in_a_line(text: str) -> str:
    """What may be of any length, cut: `afoot log` has all of it."""
    return cut(text, columns_of(sys.stderr) if is_terminal(sys.stderr) else WIDE)


def show_result(end: Finished) -> None:
    """Print the result to stdout."""
    if end.result is not None:
        for text in content(end.result):
            print(text)
        sys.stdout.flush()


def _plain(thing: object) -> dict[str, Any]:
    return msgspec.json.decode(encode(thing))


@contextmanager
def closing(shown_on: Screen) -> Iterator[Screen]:
    """The screen, closed at the end whatever happens."""
    try:
        yield shown_on
    finally:
        shown_on.close()
