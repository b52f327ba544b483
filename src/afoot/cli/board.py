"""All calls on the whole screen of a terminal: a live table, its keys, and a place to answer what waits."""

import os
import select
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import msgspec

from afoot.cli.canvas import FRAME_S, Canvas
from afoot.cli.keyboard import Keyboard, Typing
from afoot.cli.pump import CALM_S, Pump, StopAsking
from afoot.cli.signals import STOPPING, signals
from afoot.observe.row import PULSE_HZ, Line
from afoot.observe.scene import Changes, Scene, Snapshot
from afoot.observe.table import inbox, table, title
from afoot.observe.terminal import cells, clean, cut, wrapped
from afoot.wire.sse import Event

HELP = (
    "1-9     answer the question of this number",
    "Enter   answer the oldest question",
    "arrows  move the table, or what is asked; page up and page down too",
    "x       cancel a call",
    "q       leave, as Ctrl-C does; nothing is cancelled",
    "While you answer: Enter sends, Esc leaves it to others, Ctrl-D declines (an approval: skips).",
)
NOTE_S = 5.0  # so long something that was done is said
LEAST = 3  # lines that the table keeps while something is asked


class Away(msgspec.Struct, frozen=True):
    """The gateway does not answer, and why; it does again, if empty."""

    why: str


class Left(Exception):
    """The person leaves."""


class Later(Exception):
    """The question is left to others."""


class Panel:
    """What is asked at the bottom of the screen, and what was typed so far."""

    def __init__(self, is_open: Callable[[], bool], calm_s: float = 0.0) -> None:
        self.is_open = is_open
        self.said: list[str] = []
        self.prompt = ""
        self.typing = Typing()
        self.up = 0  # lines that the person has moved up
        self.calm_until = time.monotonic() + calm_s

    def lines(self, wide: int, most: int) -> tuple[list[Line], int]:
        """What fits, its end with the prompt; and the column of the cursor in the last line."""
        text = f"{clean(self.prompt)}{clean(self.typing.text)}"
        typed = list(wrapped(text, wide - 1))[-3:]
        told = [part for one in self.said for line in one.split("\n") for part in wrapped(clean(line), wide)]
        room = max(1, most - len(typed) - 1)
        self.up = min(self.up, max(0, len(told) - room))
        end = len(told) - self.up
        shown = told[max(0, end - room) : end]
        hidden = len(told) - len(shown)
        rule = (
            "─" * wide
            if not hidden
            else cut(f"── {hidden} more lines: page up, page down " + "─" * wide, wide)
        )
        lines: list[Line] = [
            [(rule, "warn")],
            *([(line, "")] for line in shown),
            *([(line, "bold")] for line in typed),
        ]
        return lines, cells(typed[-1])


class Board:
    """The screen, what is known of all calls, and the keys that wait to be heard."""

    def __init__(
        self, canvas: Canvas, keyboard: Keyboard | None, pump: "Pump[Event | Away]", where: str
    ) -> None:
        self.scene = Scene()
        self.pressed: deque[str] = deque()
        self.skip = 0
        self.has_help = False
        self._canvas, self._keyboard, self._pump, self._where = canvas, keyboard, pump, where
        self._panel: Panel | None = None
        self._note = ("", 0.0)
        self._away = ""
        self._clock = 0.0  # the gateway's clock less ours
        self._drawn = 0.0
        self._is_dirty = True
        self._signals: list[signal.Signals] = []

    def say(self, text: str) -> None:
        """Say something where it is asked; or for a moment, if nothing is."""
        self._is_dirty = True
        if self._panel is not None:
            self._panel.said.append(text)
        else:
            self._note = (text, time.monotonic() + NOTE_S)

    @contextmanager
    def asking(self, is_open: Callable[[], bool], *, is_approval: bool = False) -> Iterator[None]:
        """A place for a question while the block lasts; keys meant for another thing are dropped."""
        self._panel = Panel(is_open, CALM_S if is_approval else 0.0)
        self._is_dirty = True
        try:
            yield
        finally:
            self._panel, self._is_dirty = None, True

    def ask(self, prompt: str) -> str | None:
        """A line that the person types; None if it declines. Raises Left, Later, StopAsking."""
        panel = self._panel
        assert panel is not None
        panel.prompt, panel.typing, self._is_dirty = prompt, Typing(), True
        while True:
            self.turn()
            if not panel.is_open():
                raise StopAsking
            while self.pressed:
                key = self.pressed.popleft()
                if time.monotonic() < panel.calm_until and key != "escape":
                    continue
                if key == "enter":
                    panel.said.append(f"{panel.prompt}{panel.typing.text}")
                    panel.up = 0
                    return panel.typing.text
                if key == "ctrl-d" and not panel.typing.text:
                    return None
                self._edit(panel, key)

    def _edit(self, panel: Panel, key: str) -> None:
        self._is_dirty = True
        if key == "escape":
            raise Later
        if key in ("page up", "page down", "up", "down"):
            step = 1 if key in ("up", "down") else 5
            panel.up = max(0, panel.up + (step if key.endswith("up") else -step))
        else:
            panel.typing.press(key)

    def turn(self) -> None:
        """Wait for what comes next, take it in, and draw if it is time. Raises Left, Stop."""
        fds = [self._pump.fileno(), *([self._keyboard.fd] if self._keyboard is not None else [])]
        ready, _, _ = select.select(fds, (), (), max(0.0, self._due() - time.monotonic()))
        for item in self._pump.take(0.0):
            self._take(item)
        if self._keyboard is not None and self._keyboard.fd in ready:
            found = self._keyboard.read()
            if found is None:
                raise Left
            self.pressed.extend(found)
        self._handle_signals()
        if time.monotonic() >= self._due():
            self._draw()

    def signalled(self, number: signal.Signals) -> None:
        """A signal came; the next turn does something about it, and a second Ctrl-C at once."""
        if number in self._signals and number in STOPPING:
            raise Left
        self._signals.append(number)
        self._pump.poke()

    def _handle_signals(self) -> None:
        while self._signals:
            match self._signals.pop(0):
                case signal.SIGTSTP:
                    self._suspend()
                case signal.SIGWINCH:
                    self._is_dirty = True
                case _:
                    raise Left

    def _suspend(self) -> None:
        """Give the terminal back while the shell has it; take it again after."""
        parts = [self._canvas, *([self._keyboard] if self._keyboard is not None else [])]
        for part in parts:
            part.__exit__()
        os.kill(os.getpid(), signal.SIGSTOP)
        for part in reversed(parts):
            part.__enter__()
        self._is_dirty = True

    def _due(self) -> float:
        """When it is drawn next: soon after a change, and now and then while something moves."""
        pulse_s = 1 / PULSE_HZ if self.scene.calls else 1.0
        return self._drawn + (FRAME_S if self._is_dirty else pulse_s)

    def _take(self, item: Event | Away | None) -> None:
        self._is_dirty = True
        match item:
            case None:
                raise Left
            case Away(why=why):
                self._away = why
            case Event(event="snapshot"):
                self.scene.begin(_snapshot.decode(item.data))
            case Event(event="changes"):
                self.scene.change(_changes.decode(item.data))
            case _:
                return
        if isinstance(item, Event):
            self._clock = self.scene.now - time.monotonic()

    def _draw(self) -> None:
        self._drawn, self._is_dirty = time.monotonic(), False
        scene, (wide, high) = self.scene, self._canvas.size()
        scene.now = self._clock + self._drawn
        scene.forget(scene.now)
        bottom, cursor = self._bottom(wide, high)
        top = [title(scene, self._where, self._away, wide)]
        room = max(0, high - len(top) - len(bottom))
        top += table(scene, wide, room, self.skip)
        top += [[] for _ in range(high - len(top) - len(bottom))]
        self._canvas.draw([*top, *bottom], cursor)

    def _bottom(self, wide: int, high: int) -> tuple[list[Line], tuple[int, int] | None]:
        """What is asked, or the keys, or what waits; and where the cursor is."""
        if self._panel is not None:
            lines, column = self._panel.lines(wide, high - 1 - LEAST)
            return lines, (high - 1, column)
        text, until = self._note
        note: list[Line] = [[(cut(text, wide), "bold")]] if time.monotonic() < until else []
        if self.has_help:
            return [*([(part, "")] for line in HELP for part in wrapped(line, wide)), *note], None
        return [*inbox(self.scene, wide, max(2, high // 3)), *note], None


_snapshot = msgspec.json.Decoder(Snapshot)
_changes = msgspec.json.Decoder(Changes)


@contextmanager
def board(make: Callable[[ExitStack], Board]) -> Iterator[Board]:
    """A board whose terminal is given back whatever happens."""
    with ExitStack() as stack:
        made = make(stack)
        which = (*STOPPING, signal.SIGTSTP, signal.SIGWINCH)
        stack.enter_context(signals(made.signalled, which))
        yield made
