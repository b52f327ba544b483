"""`afoot call`: a tool run from the terminal, live, with forms for its questions; Ctrl-C cancels it."""

import json
import signal
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import Annotated, Any

from cyclopts import Parameter

from afoot.cli.asking import Asking, case_in, in_words
from afoot.cli.desk import Desk, Local, Remote, Wanted
from afoot.cli.ending import CANCELLED, CODES, INTERRUPTED, LOST, USAGE, Stop
from afoot.cli.pump import Item, Pump, StopAsking
from afoot.cli.screen import Screen, closing, screen
from afoot.cli.signals import signals
from afoot.cli.typed import pairs
from afoot.core.call import Call, evolve, note
from afoot.core.facts import Asked, Entry, Finished, Opened, Question
from afoot.observe.row import PULSE_HZ
from afoot.observe.scene import ANSWERABLE, Snapshot
from afoot.observe.terminal import clean, lasting, reading, short, short_question
from afoot.serve.view import ReadingEvent

# Why a call is cancelled, by the signal that the command got.
REASONS = {
    signal.SIGINT: "Ctrl-C in the terminal",
    signal.SIGTERM: "the command that called it was told to stop (SIGTERM)",
    signal.SIGHUP: "the terminal of the command that called it was closed (SIGHUP)",
}


@dataclass(frozen=True)
class Options:
    """Where and how to make a call."""

    args: Annotated[str, Parameter(help="arguments as a JSON object; key=value goes over it")] = ""
    at: Annotated[str, Parameter(help="the gateway's URL; else the one that runs here")] = ""
    target: Annotated[str, Parameter(help="run a file or module of tools right here, without a gateway")] = ""
    idle: Annotated[float | None, Parameter(help="seconds without a report after which it ends")] = None
    ceiling: Annotated[float | None, Parameter(help="seconds after which it ends in any case")] = None
    json: Annotated[bool, Parameter(help="print one JSON object a line")] = False
    yes: Annotated[bool, Parameter(help="approve it, if it asks whether it may run")] = False


def call(tool: str, /, *words: str, options: Annotated[Options, Parameter(name="*")] = Options()) -> int:  # noqa: B008
    """Call a tool and follow it to its end; Ctrl-C cancels the call.

    Args:
        tool: the tool's name
        words: its arguments as key=value
    """
    for limit in (options.idle, options.ceiling):
        if limit is not None and not 0 < limit < 1e9:
            raise Stop(USAGE, "--idle and --ceiling are seconds, over 0")
    with _desk(options) as desk, closing(screen(options.json)) as shown:
        schema: dict[str, Any] = desk.tool(tool)["inputSchema"]
        want = Wanted(tool, _arguments(words, options.args, schema, tool), options.idle, options.ceiling)
        can_ask = sys.stdin.isatty() and not options.json
        following = Following(desk, shown, can_ask, is_local=bool(options.target))
        following.approves = options.yes
        return following.run(desk.start(want))


class Following:
    """One call on one screen."""

    def __init__(self, desk: Desk, shown: Screen, can_ask: bool, *, is_local: bool = False) -> None:
        self._desk = desk
        self._screen = shown
        self._can_ask = can_ask
        self._is_local = is_local
        self._call: Call | None = None
        self._asked: list[Question] = []
        self._early: ReadingEvent | None = (
            None  # a reading of the very instant of the start may come before it
        )
        self._interrupts = 0
        self._signal = signal.SIGINT
        self._is_told = False
        self.cancels = True  # whether Ctrl-C cancels the call
        self.approves = False  # whether it may run without asking the person

    def run(self, items: Iterator[Item]) -> int:
        """Follow to the end, and give the exit code. The first Ctrl-C cancels, the second leaves at once."""
        beside = self._desk.around if self._screen.is_live else None
        with Pump(lambda: items, beside) as pump, signals(lambda number: self._signalled(number, pump)):
            try:
                while (code := self._code()) is None:
                    self._turn(pump)
                    if self._interrupts and not self._is_told:
                        self._is_told = True
                        self._cancel()
                self._tell_more()
                return code
            except KeyboardInterrupt:
                raise self._leave() from None
            except Stop as stop:
                raise (stop if self._call is None else lost(self._call, stop)) from None

    def _tell_more(self) -> None:
        """Where a crash lies: right here nobody can look it up later, elsewhere it is in the history."""
        end = self._call.end if self._call is not None else None
        if self._call is None or end is None or end.failure is None:
            return
        if self._screen.is_live and not self._is_local and self._call.started is not None:
            self._screen.say(f"its story: afoot log {short(self._call.id)}")
        for line in end.failure.trace.splitlines() if self._is_local else ():
            self._screen.say(f"| {clean(line)}")

    def _signalled(self, number: signal.Signals, pump: Pump[Item]) -> None:
        """Not raised where it hits, which may be in the midst of anything; only the second is."""
        self._interrupts += 1
        self._signal = number
        if self._interrupts > 1:
            raise KeyboardInterrupt
        pump.poke()

    def _leave(self) -> Stop:
        """The second Ctrl-C may come before anything was done about the first."""
        if self.cancels and self._call is not None and not self._is_told:
            with suppress(Stop):
                self._desk.cancel(self._call.id, REASONS[self._signal])
        return Stop(
            CANCELLED if self.cancels else INTERRUPTED, "left; the call was told to stop" * self.cancels
        )

    def _cancel(self) -> None:
        if not self.cancels:
            raise Stop(INTERRUPTED, "")
        if self._call is None:
            raise Stop(CANCELLED, "interrupted before the call began")
        try:
            self._desk.cancel(self._call.id, REASONS[self._signal])
        except Stop as stop:
            if stop.more.get("status") != 409:  # it has just ended; its last facts are on their way
                raise
        word = "Ctrl-C" if self._signal is signal.SIGINT else self._signal.name
        self._screen.say(f"{word}: cancelling the call; once more leaves at once")

    def _turn(self, pump: Pump[Item]) -> None:
        for item in pump.take(1 / PULSE_HZ if self._screen.is_live else None):
            self._take(item)
        self._screen.tick()
        while self._asked and not self._interrupts and self._code() is None:
            self._answer(self._asked.pop(0), pump)

    def _take(self, item: Item | None) -> None:
        if item is None:
            if self._code() is None:
                raise Stop(LOST, "the call's events ended before the call did")
            return
        if isinstance(item, Snapshot):
            self._screen.around(item)
            return
        if isinstance(item, ReadingEvent):
            self._early = item
        else:
            call = self._fold(item)
            self._screen.fact(call, item.fact)
        if self._early is not None and self._call is not None and self._call.started is not None:
            note(self._call, self._early.reading)
            self._screen.reading(self._call, self._early.reading, self._early.eta)
            self._early = None
        if isinstance(item, ReadingEvent):
            return
        if isinstance(item.fact, Asked):
            self._asked.append(item.fact.question)

    def _fold(self, entry: Entry) -> Call:
        if isinstance(entry.fact, Opened):
            self._call = Call(entry.call, entry.fact)
        elif self._call is not None:
            evolve(self._call, entry.fact)
        assert self._call is not None
        return self._call

    def _code(self) -> int | None:
        if self._call is None or self._call.end is None:
            return None
        return exit_code(self._call)

    def _answer(self, question: Question, pump: Pump[Item]) -> None:
        """Have a person answer in place, or say how it can be answered."""
        assert self._call is not None
        if question.id not in self._call.open or question.kind == "below":
            return
        if self.approves and question.kind == "approval":
            Asking(question, self._desk, self._screen, lambda _: None).send("accept", {"decision": "run"})
            return
        if not self._can_ask or question.kind not in ANSWERABLE:
            self._cannot_answer(question)
            return
        self._screen.close()
        leaving = "cancels the call" if self.cancels else "leaves it open"
        self._screen.say(f"(Ctrl-D declines, Ctrl-C {leaving})")

        if question.kind == "approval":
            pump.forget()

        def ask(prompt: str) -> str | None:
            return self._line(prompt, question, pump)

        asking = Asking(question, self._desk, self._screen, ask, case_in(question, self._call))
        try:
            asking.run()
        except StopAsking:
            if not self._interrupts:
                self._screen.say("(the question is closed)")

    def _line(self, prompt: str, question: Question, pump: Pump[Item]) -> str | None:
        print(prompt, end="", file=sys.stderr, flush=True)
        call = self._call
        assert call is not None

        def handle(item: Item | None) -> None:
            if not isinstance(item, Snapshot):
                print(file=sys.stderr)  # the prompt stands on this line
            self._take(item)

        line = pump.line(lambda: question.id in call.open and not self._interrupts, handle)
        if line is None:
            print(file=sys.stderr)
        return line

    def _cannot_answer(self, question: Question) -> None:
        if question.kind in ANSWERABLE and not self._is_local:
            name = short_question(question.id)
            self._screen.say(f"answer it with: afoot answer {name} {in_words(question)}".rstrip())
            return
        if not self.cancels:  # whoever only watches says nothing for others
            return
        why = (
            "there is no terminal to answer in"
            if question.kind == "form"
            else "there is no terminal to approve it in (--yes does)"
            if question.kind == "approval"
            else f"nobody can answer a {question.kind}"
        )
        self._screen.say(f"{why}: the answer is cancel")
        self._desk.answer(question.id, "cancel", None)


def exit_code(call: Call) -> int:
    """The exit code that a call's end means; arguments that do not fit are wrong usage."""
    end = call.end
    assert isinstance(end, Finished)
    if (
        end.outcome == "failed"
        and call.started is None
        and end.failure
        and end.failure.category == "validation"
    ):
        return USAGE
    return CODES[end.outcome]


def lost(call: Call, stop: Stop) -> Stop:
    """The same end of the command; if the gateway is gone, with how far the call was and what to do."""
    if stop.code != LOST or stop.more.get("status"):
        return stop
    latest = call.latest
    at = f", {lasting(latest.at - call.opened.at)} after its start at {reading(latest)}" if latest else ""
    effects = "" if call.started is None or call.opened.read_only else "; it may have had side effects"
    name = short(call.id)
    text = (
        f"lost call {name} ({call.opened.tool}){at}{effects}: {stop.message}\n"
        f"what became of it is in the history: start the gateway again, then afoot log {name}"
    )
    far = {"progress": latest.progress, "total": latest.total, "message": latest.message} if latest else None
    return Stop(LOST, text, call=call.id, last=far)


def _desk(options: Options) -> AbstractContextManager[Desk]:
    if options.target:
        if options.at:
            raise Stop(USAGE, "--at and --target exclude each other")
        return Local(options.target)
    from afoot.cli.client import connect

    return nullcontext(Remote(connect(options.at)))


def _arguments(words: tuple[str, ...], text: str, schema: dict[str, Any], tool: str) -> dict[str, Any]:
    try:
        given = json.loads(text) if text else {}
    except ValueError as error:
        raise Stop(USAGE, f"--args: not JSON: {error}") from None
    if not isinstance(given, dict):
        raise Stop(USAGE, "--args: must be a JSON object")
    found = given | pairs(words, schema)
    missing = [name for name in schema.get("required") or () if name not in found]
    if missing:
        named = " ".join(f"{name}=…" for name in missing)
        raise Stop(USAGE, f"{tool} needs {', '.join(missing)}: afoot call {tool} {named}")
    return found
