"""How a call is shown while it runs: a live bar in a terminal, lines in a pipe, JSON for programs."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

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
from afoot.observe.terminal import (
    amount,
    clean,
    content,
    cut,
    lasting,
    left,
    name,
    plain,
    reading,
    short,
    short_question,
    told,
    why,
)
from afoot.serve.view import encode, full, view

if TYPE_CHECKING:
    from rich.progress import Progress

EVERY_S = 1.0  # between two lines of readings in a pipe


class Screen(Protocol):
    """Shows one call. Results go to stdout, everything else to stderr."""

    def fact(self, call: Call, fact: Fact) -> None: ...

    def reading(self, call: Call, reading: Reading, eta: Eta | None = None) -> None: ...

    def say(self, text: str) -> None: ...

    def close(self) -> None: ...


def screen(as_json: bool) -> Screen:
    """The screen that fits where we are."""
    if as_json:
        return Lines()
    if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        return Bar()
    return Plain()


class Lines:
    """One JSON object a line: the call after each event, and what the event was."""

    def fact(self, call: Call, fact: Fact) -> None:
        if not isinstance(fact, Released):
            shown = full(call, [], fact.at) if isinstance(fact, Finished) else view(call, fact.at)
            kind = str(fact.__struct_config__.tag)
            self._print({**_plain(shown), "event": kind, "fact": _plain(fact)})

    def reading(self, call: Call, reading: Reading, eta: Eta | None = None) -> None:
        shown = msgspec.structs.replace(view(call, reading.at), eta=eta)
        self._print({**_plain(shown), "event": "reading"})

    def say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def close(self) -> None:
        pass

    def _print(self, thing: dict[str, Any]) -> None:
        print(encode(thing).decode(), flush=True)


class Plain:
    """Plain lines: every fact that matters, and a reading a second; the last one always."""

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

    def say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def close(self) -> None:
        pass

    def _flush(self) -> None:
        held, self._held = self._held, None
        if held is not None and reading(held):
            self.say(reading(held))


class Bar:
    """A live bar at the bottom of the terminal, lines above it."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
        self._progress: Progress | None = None
        self._began = time.monotonic()

    def fact(self, call: Call, fact: Fact) -> None:
        if isinstance(fact, Finished):
            self.close()
        for text in lines(call, fact):
            self.say(text)
        if isinstance(fact, Finished):
            show_result(fact)
        elif isinstance(fact, Opened | Started | Answered):
            self._show(call)
        elif isinstance(fact, Reported | CancelRequested):
            self._update(call)

    def reading(self, call: Call, reading: Reading, eta: Eta | None = None) -> None:
        self._update(call, eta)

    def say(self, text: str) -> None:
        self._console.print(text)

    def close(self) -> None:
        """Take the bar away, for the end or for a person who is to type."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None

    def _show(self, call: Call) -> None:
        if call.open or call.is_finished:
            return
        if self._progress is None:
            self._progress = bars(self._console)
            self._progress.add_task(name(call.opened.tool), **shown(call))
            self._progress.start()
        self._update(call)

    def _update(self, call: Call, eta: Eta | None = None) -> None:
        if self._progress is not None:
            self._progress.update(self._progress.task_ids[0], **shown(call, eta))


def bars(console: Any) -> "Progress":
    """Bars of calls, one a line; fits 80 columns."""
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.table import Column

    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=18),
        TextColumn("{task.fields[amount]}", markup=False),
        TimeElapsedColumn(),
        TextColumn(
            "{task.fields[message]}",
            markup=False,
            table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1),
        ),
        console=console,
        transient=True,
        expand=True,
    )


def shown(call: Call, eta: Eta | None = None) -> dict[str, Any]:
    """What a bar shows of a call."""
    latest = call.latest
    message = "cancelling" if call.cancel else _awaited(call) if call.open else ""
    if latest is None:
        return {"total": None, "completed": 0, "amount": "", "message": message or left(eta)}
    said = "; ".join(part for part in (left(eta), latest.message or "") if part)
    return {
        "total": latest.total,
        "completed": latest.progress or 0,
        "amount": amount(latest.progress, latest.total),
        "message": message or cut(said, 200),
    }


def _awaited(call: Call) -> str:
    is_approval = any(one.kind == "approval" for one in call.open.values())
    return "waiting for approval" if is_approval else "waiting for an answer"


def lines(call: Call, fact: Fact) -> Iterator[str]:
    """What is said about a fact to whoever follows one call."""
    match fact:
        case Opened():
            yield f"call {short(call.id)}: {clean(fact.tool)} {plain(fact.arguments)}"
        case Admitted():
            yield clean(fact.what)
        case Amended():
            yield f"arguments changed by a hook: {plain(fact.arguments)}"
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
        case CancelRequested():
            yield f"cancelling: {clean(fact.reason)}"
        case Finished():
            yield from _ended(call, fact)
        case _:
            return


def show_result(end: Finished) -> None:
    """Print the result to stdout."""
    if end.result is not None:
        for text in content(end.result):
            print(text)
        sys.stdout.flush()


def _ended(call: Call, end: Finished) -> Iterator[str]:
    outcome = end.outcome.replace("_", " ")
    after = f"after {lasting(end.at - call.opened.at)}"
    if end.failure is not None:
        yield f"{outcome} {after}: {why(end)}"
        if end.failure.retryable:
            wait = end.failure.retry_after_s
            yield f"it may be tried again{f' in {lasting(wait)}' if wait else ''}"
    else:
        yield f"{outcome} {after}"


def _plain(thing: object) -> dict[str, Any]:
    return msgspec.json.decode(encode(thing))


@contextmanager
def closing(shown_on: Screen) -> Iterator[Screen]:
    """The screen, closed at the end whatever happens."""
    try:
        yield shown_on
    finally:
        shown_on.close()
