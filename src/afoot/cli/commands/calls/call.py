"""`afoot call` runs a tool from the terminal, shows it live, and asks the person its questions.

`TerminalFollower` follows one call to its end; `afoot watch CALL` uses it too.
"""

import json
import signal
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import Annotated, Any

from cyclopts import Parameter

from afoot.cli.client import CANCELLED, EXIT_BY_OUTCOME, INTERRUPTED, LOST, USAGE, CliError, handle_signals
from afoot.cli.terminal.call_backend import CallBackend, GatewayBackend, InProcessBackend, NewCall
from afoot.cli.terminal.call_log import trace_lines
from afoot.cli.terminal.call_output import CallOutput, choose_output, closing_output
from afoot.cli.terminal.fact_text import reading_text
from afoot.cli.terminal.live.call_rows import PULSE_HZ
from afoot.cli.terminal.live.event_thread import EventThread, StopAsking, StreamItem
from afoot.cli.terminal.live.live_state import ANSWERABLE_KINDS, LiveSnapshot
from afoot.cli.terminal.questions.forms import parse_pairs
from afoot.cli.terminal.questions.prompts import QuestionDialog, answer_options, case_of_call
from afoot.cli.terminal.text import format_span, short_id, short_question_id
from afoot.core.call import Call, note, replay
from afoot.core.facts import Asked, Entry, Finished, Opened, Question
from afoot.serve.api.views import ReadingEvent

# The reason of a cancel, by the signal that the command received.
CANCEL_REASONS = {
    signal.SIGINT: "Ctrl-C in the terminal",
    signal.SIGTERM: "the command that called it was told to stop (SIGTERM)",
    signal.SIGHUP: "the terminal of the command that called it was closed (SIGHUP)",
}


@dataclass(frozen=True)
class CallOptions:
    """The options of `afoot call`."""

    args: Annotated[str, Parameter(help="arguments as a JSON object; key=value overrides it")] = ""
    at: Annotated[str, Parameter(help="the gateway's URL; default: the gateway on this machine")] = ""
    target: Annotated[
        str, Parameter(help="run a file or module of tools in this process, without a gateway")
    ] = ""
    idle: Annotated[
        float | None, Parameter(help="idle limit: seconds without a report after which the call ends")
    ] = None
    ceiling: Annotated[
        float | None, Parameter(help="ceiling: seconds after which the call ends in any case")
    ] = None
    json: Annotated[bool, Parameter(help="print one JSON object per line")] = False
    yes: Annotated[bool, Parameter(help="approve the call without asking")] = False


def call(
    tool: str,
    /,
    *words: str,
    options: Annotated[CallOptions, Parameter(name="*")] = CallOptions(),  # noqa: B008
) -> int:
    """Call a tool and follow it until it ends. Ctrl-C cancels the call.

    Args:
        tool: the tool's name
        words: its arguments as key=value
    """
    for limit in (options.idle, options.ceiling):
        if limit is not None and not 0 < limit < 1e9:
            raise CliError(USAGE, "--idle and --ceiling are seconds, over 0")
    with _open_backend(options) as backend, closing_output(choose_output(options.json)) as output:
        schema: dict[str, Any] = backend.tool(tool)["inputSchema"]
        new_call = NewCall(tool, _arguments(words, options.args, schema, tool), options.idle, options.ceiling)
        can_ask = sys.stdin.isatty() and not options.json
        follower = TerminalFollower(
            backend, output, can_ask, is_local=bool(options.target), approves=options.yes
        )
        return follower.run(backend.start(new_call))


class TerminalFollower:
    """Follows one call: shows it, asks its questions, and handles Ctrl-C."""

    def __init__(
        self,
        backend: CallBackend,
        output: CallOutput,
        can_ask: bool,
        *,
        is_local: bool = False,
        cancels: bool = True,
        approves: bool = False,
    ) -> None:
        """`cancels`: Ctrl-C cancels the call; `approves`: an approval is given without asking the person."""
        self._backend = backend
        self._output = output
        self._can_ask = can_ask
        self._is_local = is_local
        self._cancels = cancels
        self._approves = approves
        self._call: Call | None = None
        self._asked: list[Question] = []
        # A reading of the very instant of the start may come before the fact Started.
        self._early_reading: ReadingEvent | None = None
        self._interrupts = 0
        self._signal = signal.SIGINT
        self._is_cancel_sent = False

    def run(self, items: Iterator[StreamItem]) -> int:
        """Follow the call to its end and return the exit code.

        The first Ctrl-C cancels the call, the second leaves at once. Raises CliError.
        """
        secondary = self._backend.snapshots if self._output.is_live else None
        with (
            EventThread(lambda: items, secondary) as events,
            handle_signals(lambda number: self._on_signal(number, events)),
        ):
            try:
                while (code := self._exit_code()) is None:
                    self._step(events)
                    if self._interrupts and not self._is_cancel_sent:
                        self._is_cancel_sent = True
                        self._cancel()
                self._print_failure_hint()
                return code
            except KeyboardInterrupt:
                raise self._leave_error() from None
            except CliError as error:
                raise (error if self._call is None else lost_error(self._call, error)) from None

    def _print_failure_hint(self) -> None:
        """Print the trace of a call in this process, or name the command that shows the call's history."""
        end = self._call.end if self._call is not None else None
        if self._call is None or end is None or end.failure is None:
            return
        if self._output.is_live and not self._is_local and self._call.started is not None:
            self._output.say(f"its story: afoot log {short_id(self._call.id)}")
        for line in trace_lines(end.failure) if self._is_local else ():
            self._output.say(f"| {line}")

    def _on_signal(self, number: signal.Signals, events: EventThread[StreamItem]) -> None:
        """Count a signal; only the second one raises, because the first may hit in the middle of anything."""
        self._interrupts += 1
        self._signal = number
        if self._interrupts > 1:
            raise KeyboardInterrupt
        events.wake()

    def _leave_error(self) -> CliError:
        """Leave after the second Ctrl-C, which may come before the first one has cancelled the call."""
        if self._cancels and self._call is not None and not self._is_cancel_sent:
            with suppress(CliError):
                self._backend.cancel(self._call.id, CANCEL_REASONS[self._signal])
        return CliError(
            CANCELLED if self._cancels else INTERRUPTED, "left; the call was told to stop" * self._cancels
        )

    def _cancel(self) -> None:
        if not self._cancels:
            raise CliError(INTERRUPTED, "")
        if self._call is None:
            raise CliError(CANCELLED, "interrupted before the call began")
        try:
            self._backend.cancel(self._call.id, CANCEL_REASONS[self._signal])
        except CliError as error:
            if error.details.get("status") != 409:  # it has just ended; its last facts are coming
                raise
        word = "Ctrl-C" if self._signal is signal.SIGINT else self._signal.name
        self._output.say(f"{word}: cancelling the call; once more leaves at once")

    def _step(self, events: EventThread[StreamItem]) -> None:
        for item in events.take(1 / PULSE_HZ if self._output.is_live else None):
            self._apply(item)
        self._output.tick()
        while self._asked and not self._interrupts and self._exit_code() is None:
            self._answer(self._asked.pop(0), events)

    def _apply(self, item: StreamItem | None) -> None:
        if item is None:
            if self._exit_code() is None:
                raise CliError(LOST, "the call's events ended before the call did")
            return
        if isinstance(item, LiveSnapshot):
            self._output.show_snapshot(item)
            return
        if isinstance(item, ReadingEvent):
            self._early_reading = item
        else:
            call = self._fold(item)
            self._output.fact(call, item.fact)
        if self._early_reading is not None and self._call is not None and self._call.started is not None:
            note(self._call, self._early_reading.reading)
            self._output.reading(self._call, self._early_reading.reading, self._early_reading.eta)
            self._early_reading = None
        if isinstance(item, ReadingEvent):
            return
        if isinstance(item.fact, Asked):
            self._asked.append(item.fact.question)

    def _fold(self, entry: Entry) -> Call:
        if isinstance(entry.fact, Opened):
            self._call = Call(entry.call, entry.fact)
        elif self._call is not None:
            replay(self._call, entry.fact)
        assert self._call is not None
        return self._call

    def _exit_code(self) -> int | None:
        if self._call is None or self._call.end is None:
            return None
        return exit_code(self._call)

    def _answer(self, question: Question, events: EventThread[StreamItem]) -> None:
        """Ask the person, or say how the question can be answered elsewhere."""
        assert self._call is not None
        if question.id not in self._call.open or question.kind == "below":
            return
        if self._approves and question.kind == "approval":
            QuestionDialog(question, self._backend, self._output, lambda _: None).send(
                "accept", {"decision": "run"}
            )
            return
        if not self._can_ask or question.kind not in ANSWERABLE_KINDS:
            self._handle_unanswerable(question)
            return
        self._output.close()
        leaving = "cancels the call" if self._cancels else "leaves it open"
        self._output.say(f"(Ctrl-D declines, Ctrl-C {leaving})")

        if question.kind == "approval":
            events.drop_typed()

        def ask(prompt: str) -> str | None:
            return self._ask_line(prompt, question, events)

        asking = QuestionDialog(
            question, self._backend, self._output, ask, case_of_call(question, self._call)
        )
        try:
            asking.run()
        except StopAsking:
            if not self._interrupts:
                self._output.say("(the question is closed)")

    def _ask_line(self, prompt: str, question: Question, events: EventThread[StreamItem]) -> str | None:
        print(prompt, end="", file=sys.stderr, flush=True)
        call = self._call
        assert call is not None

        def handle(item: StreamItem | None) -> None:
            if not isinstance(item, LiveSnapshot):
                print(file=sys.stderr)  # end the line of the prompt
            self._apply(item)

        line = events.read_line(lambda: question.id in call.open and not self._interrupts, handle)
        if line is None:
            print(file=sys.stderr)
        return line

    def _handle_unanswerable(self, question: Question) -> None:
        if question.kind in ANSWERABLE_KINDS and not self._is_local:
            name = short_question_id(question.id)
            self._output.say(f"answer it with: afoot answer {name} {answer_options(question)}".rstrip())
            return
        if not self._cancels:  # a person who only watches does not answer for others
            return
        why = (
            "there is no terminal to answer in"
            if question.kind == "form"
            else "there is no terminal to approve it in (--yes does)"
            if question.kind == "approval"
            else f"nobody can answer a {question.kind}"
        )
        self._output.say(f"{why}: the answer is cancel")
        self._backend.answer(question.id, "cancel", None)


def exit_code(call: Call) -> int:
    """The exit code of an ended call; invalid arguments are wrong usage."""
    end = call.end
    assert isinstance(end, Finished)
    if (
        end.outcome == "failed"
        and call.started is None
        and end.failure
        and end.failure.category == "validation"
    ):
        return USAGE
    return EXIT_BY_OUTCOME[end.outcome]


def lost_error(call: Call, error: CliError) -> CliError:
    """The error itself; if the gateway is gone, with the call's last progress and what to do."""
    if error.code != LOST or error.details.get("status"):
        return error
    latest = call.latest
    at = (
        f", {format_span(latest.at - call.opened.at)} after its start at {reading_text(latest)}"
        if latest
        else ""
    )
    effects = "" if call.started is None or call.is_harmless else "; it may have had side effects"
    name = short_id(call.id)
    text = (
        f"lost call {name} ({call.opened.tool}){at}{effects}: {error.message}\n"
        f"what became of it is in the history: start the gateway again, then afoot log {name}"
    )
    far = {"progress": latest.progress, "total": latest.total, "message": latest.message} if latest else None
    return CliError(LOST, text, call=call.id, last=far)


def _open_backend(options: CallOptions) -> AbstractContextManager[CallBackend]:
    if options.target:
        if options.at:
            raise CliError(USAGE, "--at and --target exclude each other")
        return InProcessBackend(options.target)
    from afoot.cli.client import connect

    return nullcontext(GatewayBackend(connect(options.at)))


def _arguments(words: tuple[str, ...], text: str, schema: dict[str, Any], tool: str) -> dict[str, Any]:
    try:
        given = json.loads(text) if text else {}
    except ValueError as error:
        raise CliError(USAGE, f"--args: not JSON: {error}") from None
    if not isinstance(given, dict):
        raise CliError(USAGE, "--args: must be a JSON object")
    found = given | parse_pairs(words, schema)
    missing = [name for name in schema.get("required") or () if name not in found]
    if missing:
        named = " ".join(f"{name}=…" for name in missing)
        raise CliError(USAGE, f"{tool} needs {', '.join(missing)}: afoot call {tool} {named}")
    return found
