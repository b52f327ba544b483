"""`Dashboard` shows all calls on the whole screen of a terminal, and lets a person answer and cancel.

One loop reads three sources: events of the gateway from an `EventThread`, keys, and signals. `FullScreen`
draws, at most once per FRAME_S. The terminal is given back as it was, whatever happens.
"""

import os
import select
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import msgspec

from afoot.cli.client import (
    STOP_SIGNALS,
    CliError,
    GatewayClient,
    connect,
    handle_signals,
    path_segment,
)
from afoot.cli.terminal import text
from afoot.cli.terminal.ansi import FRAME_S, FullScreen
from afoot.cli.terminal.call_clocks import GatewayClock
from afoot.cli.terminal.call_words import STATES
from afoot.cli.terminal.keyboard import Keyboard, LineEditor
from afoot.cli.terminal.live.call_rows import PULSE_HZ, StyledLine
from afoot.cli.terminal.live.call_table import call_table, title_line
from afoot.cli.terminal.live.event_thread import IGNORE_KEYS_S, EventThread, StopAsking
from afoot.cli.terminal.live.live_state import (
    EndedCalls,
    LiveChanges,
    LiveSnapshot,
    LiveState,
    OpenQuestions,
)
from afoot.cli.terminal.questions.prompts import QuestionDialog, case_of_question, question_of_json
from afoot.cli.terminal.text import clean, display_width, truncate, wrap
from afoot.wire.framing import ServerSentEvent

KEYS_HELP = (
    "1-9     answer the question of this key",
    "Enter   answer the oldest question",
    "arrows  move the table, or what is asked; page up and page down too",
    "h, l    fold and unfold many calls of one tool",
    "x       cancel a call, in five seconds",
    "u       undo the last cancel that has not come yet",
    "q       leave, as Ctrl-C does; nothing is cancelled",
    "While you answer: Enter sends, Esc leaves it to others, Ctrl-D declines (an approval: skips).",
    "  ".join(f"{look.shape} {look.word}" for look in list(STATES.values())[:6]),
    "  ".join(f"{look.shape} {look.word}" for look in list(STATES.values())[6:]),
    "Silent: since the last sign of life; ● to ○: what is left of its limit; ‖: time to answer.",
)
UNDO_S = 5.0  # how long a cancel can be withdrawn, as in the console
NOTE_S = 5.0  # how long a note about the last action is shown
SILENCE_S = 30.0  # how long a stream may be silent before its first snapshot
SLACK_S = 2.0
FEW_CALLS = 500  # of so many, the table is drawn at each change
PAUSE_S = 0.25  # between two drawings of more calls
MIN_TABLE_LINES = 3  # lines that the table keeps while a question is open
PAGE_ROWS = 10  # rows that page up and page down move

_snapshot_decoder = msgspec.json.Decoder(LiveSnapshot)
_changes_decoder = msgspec.json.Decoder(LiveChanges)


class GatewayReachability(msgspec.Struct, frozen=True):
    """Whether the gateway answers, or does no more."""

    is_reachable: bool


FeedItem = ServerSentEvent | GatewayReachability | EndedCalls | OpenQuestions


class LeaveDashboard(Exception):
    """The person leaves the dashboard."""


class LeaveQuestion(Exception):
    """The person leaves the question to others."""


class PromptPanel:
    """The open dialog at the bottom of the screen, with the line that is being typed."""

    def __init__(self, is_open: Callable[[], bool], ignore_keys_s: float = 0.0) -> None:
        self.is_open = is_open
        self.transcript: list[str] = []  # all that was shown and typed in this dialog
        self.prompt = ""
        self.editor = LineEditor()
        self.scrolled_up = 0  # lines
        self.ignore_keys_until = time.monotonic() + ignore_keys_s

    def lines(self, width: int, most: int) -> tuple[list[StyledLine], int]:
        """The last lines that fit, with the prompt at their end, and the cursor's column in the last line."""
        text = f"{clean(self.prompt)}{clean(self.editor.text)}"
        typed = list(wrap(text, width - 1))[-3:]
        whole = [
            part for one in self.transcript for line in one.split("\n") for part in wrap(clean(line), width)
        ]
        room = max(1, most - len(typed) - 1)
        self.scrolled_up = min(self.scrolled_up, max(0, len(whole) - room))
        end = len(whole) - self.scrolled_up
        shown = whole[max(0, end - room) : end]
        hidden = len(whole) - len(shown)
        rule = "─" * width
        if hidden:
            rule = truncate(f"── {hidden} more lines: page up, page down {rule}", width)
        lines: list[StyledLine] = [
            [(rule, "warn")],
            *([(line, "")] for line in shown),
            *([(line, "bold")] for line in typed),
        ]
        return lines, display_width(typed[-1])


class Dashboard:
    """The live table, its keys, and the dialogs that answer a question or cancel a call.

    `at` is the gateway that the person named, if any. Each dialog connects again: the gateway may have moved.
    """

    def __init__(
        self,
        screen: FullScreen,
        keyboard: Keyboard | None,
        events: EventThread[FeedItem],
        url: str,
        at: str = "",
    ) -> None:
        self._screen = screen
        self._keyboard = keyboard
        self._events = events
        self._url = url
        self._at = at
        self._live_state = LiveState()
        self._pressed_keys: deque[str] = deque()
        self._first_row = 0
        self._has_help = False
        self._panel: PromptPanel | None = None
        self._note = ("", 0.0)
        self._is_unfolded = False
        self._clock = GatewayClock(time.time() - time.monotonic())
        self._lost_at: float | None = None  # when the gateway was lost, by its clock: everything stands still
        self._heard_at = time.monotonic()  # when anything came from the gateway
        self._silence_limit_s = SILENCE_S  # a stream that is silent for longer is dead
        self._drawn_at = 0.0
        self._is_dirty = True
        self._signals: list[signal.Signals] = []

    def run(self) -> None:
        """Show all calls and act on keys until the person leaves."""
        try:
            while True:
                self._step()
                while self._pressed_keys:
                    self._handle_key(self._pressed_keys.popleft())
        except LeaveDashboard:
            return

    def on_signal(self, number: signal.Signals) -> None:
        """Note a signal for the next step; a second Ctrl-C leaves at once. Raises LeaveDashboard."""
        if number in self._signals and number in STOP_SIGNALS:
            raise LeaveDashboard
        self._signals.append(number)
        self._events.wake()

    def say(self, text: str) -> None:
        """Show a text in the open dialog; without one, as a note for NOTE_S."""
        self._is_dirty = True
        if self._panel is not None:
            self._panel.transcript.append(text)
        else:
            self._note = (text, time.monotonic() + NOTE_S)

    def ask(self, prompt: str) -> str | None:
        """Read a line in the open dialog; None if the person declines.

        Raises LeaveDashboard, LeaveQuestion, and StopAsking once the question is closed.
        """
        panel = self._panel
        assert panel is not None
        panel.prompt = prompt
        panel.editor = LineEditor()
        self._is_dirty = True
        while True:
            self._step()
            if not panel.is_open():
                raise StopAsking
            while self._pressed_keys:
                key = self._pressed_keys.popleft()
                if time.monotonic() < panel.ignore_keys_until and key != "escape":
                    continue
                if key == "enter":
                    panel.transcript.append(f"{panel.prompt}{panel.editor.text}")
                    panel.scrolled_up = 0
                    return panel.editor.text
                if key == "ctrl-d" and not panel.editor.text:
                    return None
                self._edit(panel, key)

    def close_question(self, question: str) -> None:
        """Take an answered question off the screen; the event stream confirms it a moment later."""
        self._live_state.open_questions.pop(question, None)

    def _edit(self, panel: PromptPanel, key: str) -> None:
        self._is_dirty = True
        if key == "escape":
            raise LeaveQuestion
        if key in ("page up", "page down", "up", "down"):
            step = 1 if key in ("up", "down") else 5
            panel.scrolled_up = max(0, panel.scrolled_up + (step if key.endswith("up") else -step))
        else:
            panel.editor.press(key)

    def _handle_key(self, key: str) -> None:
        self._has_help = key == "?" and not self._has_help
        questions = [question.id for _, question in self._live_state.questions_in_order()]
        match key:
            case "q":
                raise LeaveDashboard
            case "x":
                self._run_dialog(self._cancel_dialog)
            case "u":
                self._run_dialog(self._undo_cancel)
            case "up" | "page up" | "down" | "page down":
                step = PAGE_ROWS if key.startswith("page") else 1
                self._first_row = max(0, self._first_row + (step if key.endswith("down") else -step))
            case "h" | "l":
                self._is_unfolded = key == "l"
            case "enter" if questions:
                self._run_dialog(lambda client: self._answer_dialog(client, questions[0]))
            case _ if key.isdecimal() and 0 < int(key) <= len(questions):
                self._run_dialog(lambda client: self._answer_dialog(client, questions[int(key) - 1]))
            case _ if key == "enter" or key.isdecimal():
                self.say("no question of this number waits for you" if questions else "nothing waits for you")
            case _:
                pass

    def _run_dialog(self, dialog: Callable[[GatewayClient], None]) -> None:
        """Run a dialog; an error is shown as a note, and the dashboard goes on."""
        try:
            dialog(connect(self._at))
        except LeaveQuestion:
            pass
        except StopAsking:
            self.say("somebody else has settled it")
        except CliError as error:
            self.say(error.message.partition("\n")[0])

    def _cancel_dialog(self, client: GatewayClient) -> None:
        with self._open_panel(lambda: True):
            self.say("Cancel a call (Esc: none).")
            name = (self.ask("the end of its id: ") or "").strip()
            if not name:
                return
            reason = (self.ask("why (the tool is told; Enter: no reason): ") or "").strip()
        body = {"after_s": UNDO_S} | ({"reason": reason} if reason else {})
        call = client.post(f"/api/calls/{path_segment(name)}/cancel", body)
        words = (
            f"cancels in {text.format_left(UNDO_S)}, u undoes it" if "cancel_due" in call else call["state"]
        )
        self.say(f"{text.short_tool_name(call['tool'])} {text.short_id(call['id'])}: {words}")

    def _undo_cancel(self, client: GatewayClient) -> None:
        """Withdraw the cancel that was asked for last, by whomever."""
        node = self._live_state.pending_cancel()
        if node is None:
            self.say("no cancel is pending")
            return
        call = client.delete(f"/api/calls/{path_segment(node.call.id)}/cancel")
        node.cancel_due = None  # the event stream confirms it a moment later
        self.say(f"{text.short_tool_name(call['tool'])} {text.short_id(call['id'])}: goes on")

    def _answer_dialog(self, client: GatewayClient, name: str) -> None:
        found: list[dict[str, Any]] = client.get("/api/questions")["questions"]
        asked = next((one for one in found if one["id"] == name), None)
        if asked is None:
            raise StopAsking
        sender = _AnswerSender(client, asked, self)
        who = f"{text.short_id(asked['call'])} {text.clean(asked['tool'])}"
        is_approval = asked["kind"] == "approval"
        with self._open_panel(lambda: name in self._live_state.open_questions, is_approval=is_approval):
            self.say(f"{who} asks: {text.clean(asked['message'])}")
            for line in _change_lines(asked):
                self.say(line)
            self.say("(Esc leaves it to others, Ctrl-D declines)")
            QuestionDialog(question_of_json(asked), sender, self, self.ask, case_of_question(asked)).run()
        self.say(f"{who}: {sender.outcome}")

    @contextmanager
    def _open_panel(self, is_open: Callable[[], bool], *, is_approval: bool = False) -> Iterator[None]:
        """Open a panel for a dialog.

        An approval ignores keys for a moment: they were meant for something else.
        """
        self._panel = PromptPanel(is_open, IGNORE_KEYS_S if is_approval else 0.0)
        self._is_dirty = True
        try:
            yield
        finally:
            self._panel = None
            self._is_dirty = True

    def _step(self) -> None:
        """Wait for events, keys or a signal, apply them, and draw when it is time.

        Raises LeaveDashboard, CliError.
        """
        fds = [self._events.fileno(), *([self._keyboard.fd] if self._keyboard is not None else [])]
        ready, _, _ = select.select(fds, (), (), max(0.0, self._next_draw() - time.monotonic()))
        for item in self._events.take(0.0):
            self._apply(item)
        if self._keyboard is not None and self._keyboard.fd in ready:
            found = self._keyboard.read()
            if found is None:
                raise LeaveDashboard
            self._pressed_keys.extend(found)
        self._handle_signals()
        if time.monotonic() >= self._next_draw():
            self._draw()

    def _apply(self, item: FeedItem | None) -> None:
        if item is None:
            raise LeaveDashboard
        if isinstance(item, GatewayReachability) and not item.is_reachable:
            self._lose_gateway()
            return
        self._heard_at = time.monotonic()
        if self._lost_at is not None:
            self._lost_at = None
            self._is_dirty = True
        match item:
            case EndedCalls():
                self._live_state.load_ended(item)
            case OpenQuestions():
                self._live_state.load_questions(item)
            case ServerSentEvent(event="snapshot"):
                snapshot = _snapshot_decoder.decode(item.data)
                self._silence_limit_s = 2 * snapshot.keepalive_s + SLACK_S
                self._live_state.load_snapshot(snapshot)
                self._clock.hear(snapshot.now, self._heard_at)
            case ServerSentEvent(event="changes"):
                changes = _changes_decoder.decode(item.data)
                self._live_state.apply_changes(changes)
                self._clock.hear(changes.now, self._heard_at)
            case _:
                return
        self._is_dirty = True

    def _lose_gateway(self) -> None:
        """Let everything stand still where it is: nobody knows how the calls go on."""
        if self._lost_at is None:
            self._lost_at = self._clock.now(time.monotonic())
            self._is_dirty = True

    def _handle_signals(self) -> None:
        while self._signals:
            match self._signals.pop(0):
                case signal.SIGTSTP:
                    self._suspend()
                case signal.SIGWINCH:
                    self._is_dirty = True
                case _:
                    raise LeaveDashboard

    def _suspend(self) -> None:
        """Give the terminal back while this process is stopped (Ctrl-Z), and take it again afterwards."""
        devices = [self._screen, *([self._keyboard] if self._keyboard is not None else [])]
        for device in devices:
            device.__exit__()
        os.kill(os.getpid(), signal.SIGSTOP)
        for device in reversed(devices):
            device.__enter__()
        self._heard_at = time.monotonic()  # meanwhile nobody read the stream
        self._is_dirty = True

    def _next_draw(self) -> float:
        """The time of the next drawing: soon after a change, and at the pulse's rate while clocks run."""
        is_moving = self._live_state.calls and self._lost_at is None
        frame_s = FRAME_S if len(self._live_state.calls) < FEW_CALLS else PAUSE_S
        pulse_s = max(frame_s, 1 / PULSE_HZ) if is_moving else 1.0
        return self._drawn_at + (frame_s if self._is_dirty else pulse_s)

    def _draw(self) -> None:
        self._drawn_at = time.monotonic()
        if self._drawn_at - self._heard_at > self._silence_limit_s:
            self._lose_gateway()
        self._is_dirty = False
        live_state = self._live_state
        width, height = self._screen.size()
        if live_state.now:  # while the gateway is away, no clock goes on
            live_state.now = self._clock.now(self._drawn_at) if self._lost_at is None else self._lost_at
        live_state.drop_ended(live_state.now)
        bottom, cursor = self._bottom_lines(width, height)
        top = [title_line(live_state, self._url, width), *self._status_lines(width)]
        room = max(0, height - len(top) - len(bottom))
        table = call_table(live_state, width, room, self._first_row, is_unfolded=self._is_unfolded)
        self._first_row = table.first_row
        is_lost = self._lost_at is not None
        top += [[(text, "dim") for text, _ in line] for line in table.lines] if is_lost else table.lines
        top += [[] for _ in range(height - len(top) - len(bottom))]
        self._screen.draw([*top, *bottom], cursor)

    def _status_lines(self, width: int) -> list[StyledLine]:
        """The line below the title, if something is wrong with the gateway or its history."""
        if self._lost_at is not None:
            since = time.strftime("%H:%M:%S", time.localtime(self._lost_at))
            return [[(truncate(f"Not connected since {since}, trying again", width), "warn")]]
        if self._live_state.degraded:
            words = f"The history cannot be written: {clean(self._live_state.degraded)}"
            return [[(truncate(words, width), "bad")]]
        return []

    def _bottom_lines(self, width: int, height: int) -> tuple[list[StyledLine], tuple[int, int] | None]:
        """The open dialog, or the help, or a note; and the cursor's line and column."""
        if self._panel is not None:
            lines, column = self._panel.lines(width, height - 1 - MIN_TABLE_LINES)
            return lines, (height - 1, column)
        text, until = self._note
        note: list[StyledLine] = [[(truncate(text, width), "bold")]] if time.monotonic() < until else []
        if self._has_help:
            return [*([(part, "")] for line in KEYS_HELP for part in wrap(line, width)), *note], None
        return note, None


@contextmanager
def open_dashboard(make: Callable[[ExitStack], Dashboard]) -> Iterator[Dashboard]:
    """The dashboard that `make` builds; its terminal is given back whatever happens."""
    with ExitStack() as stack:
        dashboard = make(stack)
        which = (*STOP_SIGNALS, signal.SIGTSTP, signal.SIGWINCH)
        stack.enter_context(handle_signals(dashboard.on_signal, which))
        yield dashboard


class _AnswerSender:
    """Sends an answer to the question exactly as it was displayed (by its digest), and to no other."""

    def __init__(self, client: GatewayClient, asked: dict[str, Any], dashboard: Dashboard) -> None:
        self._client = client
        self._asked = asked
        self._dashboard = dashboard
        self.outcome = "not answered"

    def answer(self, question: str, action: str, content: object) -> None:
        body: dict[str, Any] = {"action": action, "digest": self._asked.get("digest", "")}
        if content is not None:
            body["content"] = content
        try:
            self._client.post(f"/api/questions/{path_segment(question)}/answer", body)
        except CliError as error:
            self.outcome = error.message
            raise
        self._dashboard.close_question(question)
        decision = content.get("decision") if isinstance(content, dict) else None
        self.outcome = str(decision or {"accept": "answered"}.get(action, f"{action}d"))


def _change_lines(asked: dict[str, Any]) -> list[str]:
    """The line about parts that changed since the tool was last approved, if any did."""
    changed = asked.get("changed") or {}
    parts = [word for word in ("definition", "arguments") if changed.get(word)]
    if not parts:
        return []
    when = text.format_time(changed["at"])
    return [f"  its {' and '.join(parts)} changed since it was approved at {when}"]
