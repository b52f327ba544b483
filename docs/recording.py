"""Records terminal.svg, two calls in a real terminal; run it after changing what `afoot call` shows.

python docs/recording.py
"""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import pyte

PICTURE = Path(__file__).with_name("terminal.svg")
TOOLS = "afoot.cli.demo_tools"
WIDE, HIGH = 84, 15
LIMIT_S, FRAME_S, KEY_S, READ_S, REST_S = 60.0, 0.2, 0.045, 1.2, 3.5
CELL, LINE, SIZE, EDGE = 8.0, 19.0, 13.3, 16.0  # of a picture, in pixels
COLOURS = {"cyan": "c", "green": "g", "red": "r", "brown": "y"}

STYLE = """
text{font:%spx ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;white-space:pre}
text{fill:#24292f}.p{fill:#f6f8fa;stroke:#d0d7de}.d{fill:#8c959f}.b{font-weight:600}.c{fill:#0969da}
.g{fill:#1a7f37}.r{fill:#cf222e}.y{fill:#9a6700}.h{visibility:hidden}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.p{fill:#0d1117;stroke:#30363d}.d{fill:#6e7681}.c{fill:#58a6ff}
.g{fill:#3fb950}.r{fill:#f85149}.y{fill:#d29922}}
"""


ALT = "A terminal: a tool is called and its bar moves; another asks for approval, and runs."


class Screen(pyte.Screen):
    """A pyte screen that shows dim text as italics: pyte does not know dim, and italics are not used."""

    def select_graphic_rendition(self, *attrs: int, **more: Any) -> None:
        super().select_graphic_rendition(*(3 if one == 2 else one for one in attrs), **more)


Run = tuple[int, str, str]  # column, text, classes
Rows = list[tuple[Run, ...]]


class Frame(NamedTuple):
    """The content of the screen from an instant on."""

    at: float
    rows: Rows


class Shell:
    """A shell in a terminal; types keys and records the screen."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", HIGH, WIDE, 0, 0))
        self._shell = subprocess.Popen(
            ["bash", "--norc", "--noprofile", "-i"], stdin=slave, stdout=slave, stderr=slave,
            env={**environment, "TERM": "xterm", "PS1": "$ ", "BASH_SILENCE_DEPRECATION_WARNING": "1"},
            start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(slave)
        self._screen = Screen(WIDE, HIGH)
        self._stream = pyte.ByteStream(self._screen)
        self._began = time.monotonic()
        self.frames: list[Frame] = []

    def type(self, text: str) -> None:
        """Type at the speed of a person."""
        for char in text:
            os.write(self._master, char.encode())
            self.look(KEY_S)

    def until(self, text: str, times: int = 1) -> None:
        """Record until a text is on the screen this many times."""
        end = time.monotonic() + LIMIT_S
        while "\n".join(line.rstrip() for line in self._screen.display).count(text) < times:
            if time.monotonic() > end:
                raise SystemExit(f"{text!r} did not come, but:\n" + "\n".join(self._screen.display))
            self.look(0.05)

    def look(self, seconds: float) -> None:
        """Read the output for this long and record the frames."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([self._master], (), (), left)[0]:
                self._stream.feed(os.read(self._master, 65536))
        now, rows = time.monotonic() - self._began, list(map(self._row, range(HIGH)))
        if not self.frames or (rows != self.frames[-1].rows and now - self.frames[-1].at >= FRAME_S):
            self.frames.append(Frame(now, rows))

    def end(self) -> float:
        """End the shell; returns the duration of the recording."""
        self.look(FRAME_S)
        self._shell.send_signal(signal.SIGKILL)
        self._shell.wait()
        os.close(self._master)
        return time.monotonic() - self._began

    def _row(self, number: int) -> tuple[Run, ...]:
        line = self._screen.buffer[number]
        cells = [(column, line[column]) for column in range(WIDE)]
        found: list[Run] = []
        for style, group in groupby(cells, key=lambda cell: _classes(cell[1])):
            run = list(group)
            text = "".join(char.data for _, char in run)
            if text.strip():
                start = len(text) - len(text.lstrip())
                found.append((run[start][0], text.strip(), style))
        return tuple(found)


def _classes(char: Any) -> str:
    names = [COLOURS.get(char.fg, ""), "b" if char.bold else "", "d" if char.italics else ""]
    return " ".join(name for name in names if name)


def drawn(frames: list[Frame], lasts: float) -> str:
    """The frames as one SVG that is animated by CSS; without animation it shows the last frame."""
    whole = lasts + REST_S
    parts: list[str] = []
    moves: dict[tuple[str, str], str] = {}
    for number in range(HIGH):
        for rows, since, until in _spans(frames, number, lasts):
            if not rows:
                continue
            is_last = until >= lasts
            begin, end = f"{since / whole * 100:.2f}", "100" if is_last else f"{until / whole * 100:.2f}"
            name = moves.setdefault((begin, end), f"m{len(moves)}")
            hidden = "" if is_last else ' class="h"'
            runs = "".join(_run(run) for run in rows)
            y = EDGE + LINE * (number + 1) - 5
            parts.append(f'<text y="{y:g}"{hidden} style="animation-name:{name}">{runs}</text>')
    wide, high = WIDE * CELL + 2 * EDGE, HIGH * LINE + 2 * EDGE
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:g} {high:g}" width="{wide:g}" '
        f'height="{high:g}" role="img" aria-label="{ALT}">\n'
        f"<style>{STYLE % SIZE}{_animated(moves, whole)}</style>\n"
        f'<rect class="p" x=".5" y=".5" width="{wide - 1:g}" height="{high - 1:g}" rx="8"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _spans(frames: list[Frame], number: int, lasts: float) -> Iterator[tuple[tuple[Run, ...], float, float]]:
    """The content of a row, with its start and its end."""
    for rows, group in groupby(enumerate(frames), key=lambda one: one[1].rows[number]):
        seen = list(group)
        behind = seen[-1][0] + 1
        yield rows, seen[0][1].at, frames[behind].at if behind < len(frames) else lasts


def _run(run: Run) -> str:
    column, text, style = run
    classes = f' class="{style}"' if style else ""
    # Each run gets the width of its columns, whatever the font is.
    wide = f' textLength="{len(text) * CELL:g}" lengthAdjust="spacingAndGlyphs"' if len(text) > 1 else ""
    return f'<tspan x="{EDGE + column * CELL:g}"{wide}{classes}>{escape(text, quote=False)}</tspan>'


def _animated(moves: Mapping[tuple[str, str], str], whole: float) -> str:
    """An element that is shown from one percentage of the animation to another."""
    frames: list[str] = []
    for (begin, end), name in moves.items():
        steps = {"0": "hidden", begin: "visible"} if float(begin) > 0 else {"0": "visible"}
        steps |= {} if end == "100" else {end: "hidden"}
        frames.append(
            f"@keyframes {name}{{{''.join(f'{at}%{{visibility:{how}}}' for at, how in steps.items())}}}"
        )
    still = "@media(prefers-reduced-motion:reduce){text{animation:none!important}}"
    return f"text{{animation:{whole:.1f}s step-end infinite}}{''.join(frames)}{still}"


@contextmanager
def gateway(home: str) -> Iterator[dict[str, str]]:
    """A gateway with the demo's tools, and the environment in which commands find it."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("AFOOT_")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
    environment = {**kept, "AFOOT_HOME": home, "PATH": path}
    words = [sys.executable, "-m", "afoot", "serve", TOOLS, "--http", "127.0.0.1:0", "--json"]
    with subprocess.Popen(
        words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as started:
        assert started.stdout is not None
        json.loads(started.stdout.readline())
        try:
            yield environment
        finally:
            started.terminate()


def recorded() -> str:
    """Record the session and return the picture."""
    with tempfile.TemporaryDirectory() as home, gateway(home) as environment:
        shell = Shell(environment)
        shell.until("$")
        shell.look(0.6)
        shell.type("afoot call export_pages pages=60 every_s=0.12\n")
        shell.until("$", times=2)
        shell.look(READ_S)
        shell.type("afoot call delete_backups older_than_days=30\n")
        shell.until("a)lways:")
        shell.look(READ_S + 0.6)
        shell.type("r")
        shell.look(0.4)
        shell.type("\n")
        shell.until("$", times=3)
        return drawn(shell.frames, shell.end())


if __name__ == "__main__":
    PICTURE.write_text(recorded())
    print(f"{PICTURE.name}: {PICTURE.stat().st_size} bytes")
