"""Functions that format text for a terminal: widths, short ids, times and durations, progress.

`clean` makes every character visible that could steer a terminal; all text of tools and servers goes
through it.
"""

import re
import time
import unicodedata
from collections.abc import Iterator, Mapping
from math import ceil

from afoot.core.facts import Reading
from afoot.core.notices import SHORT_ID_CHARS
from afoot.core.number_format import format_number, format_share
from afoot.observe.eta import Eta

_INVISIBLE_CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
# Letters and marks that are drawn as nothing: fillers, variation selectors, tags.
_FILLERS = {0x115F, 0x1160, 0x3164, 0xFFA0, 0x034F, 0x2800, *range(0x180B, 0x1810), *range(0xE0100, 0xE01F0)}
_JOINER = "\u200d"
_HEX_UNIT = re.compile("(....)")
# Substitutes for the characters that views draw with in a terminal that has only ASCII. `call_words` has the
# shapes of states.
_ASCII_DRAWINGS = {
    "━": "=", "╍": "%", "┅": ":", "─": "-", "└": "`", "│": "|", "…": "~", "·": "-", "‖": "=",
    "▸": "*", "●": "O", "◕": "C", "◑": "c", "◔": "(", "○": ".", "⟨": "<", "⟩": ">",
}  # fmt: skip


class _MarkTable(dict[int, str | int]):
    """A translation table: each character as itself or as its mark; the web console uses the same marks."""

    def __init__(self, keep: str) -> None:
        super().__init__({ord(char): char for char in keep + _JOINER})

    def __missing__(self, code: int) -> str | int:
        found: str | int = code
        if code < 0x20:
            found = chr(0x2400 + code)
        elif code == 0x7F:
            found = "␡"
        elif code in _FILLERS or unicodedata.category(chr(code)) in _INVISIBLE_CATEGORIES:
            found = f"⟨U+{code:04X}⟩"
        self[code] = found
        return found


_MARKS: dict[str, _MarkTable] = {}


def clean(text: str, keep: str = "") -> str:
    """The text with a visible mark for every invisible character and every one that steers a terminal."""
    if text.isascii() and text.isprintable():
        return text
    text = text.translate(_MARKS.setdefault(keep, _MarkTable(keep)))
    return re.sub(_JOINER, _mark_joiner, text) if _JOINER in text else text


def display_width(text: str) -> int:
    """The number of columns of a clean text."""
    return len(text) if text.isascii() else sum(map(_char_width, text))


def truncate(text: str, width: int) -> str:
    """One line of at most this width. The work is bounded by the width, however long the text is."""
    most = 8 * max(0, width)  # combining marks take no column, so more characters than columns may fit
    text = clean(text) if len(text) <= most else clean(text[:most]) + "…"
    if display_width(text) <= width:
        return text
    used, end = 1, 0
    while end < len(text) and used + _char_width(text[end]) <= width:
        used += _char_width(text[end])
        end += 1
    return f"{text[:end]}…" if width > 0 else ""


def pad(text: str, width: int) -> str:
    """The text in a column of exactly this width."""
    text = truncate(text, width)
    return text + " " * (width - display_width(text))


def wrap(text: str, width: int) -> Iterator[str]:
    """A clean text in lines of at most this width."""
    line, used = "", 0
    for char in text:
        if used + _char_width(char) > max(2, width):
            yield line
            line, used = "", 0
        line, used = line + char, used + _char_width(char)
    yield line


def to_ascii(text: str, shapes: Mapping[str, str]) -> str:
    """A clean text in ASCII, in as many columns; `shapes` maps further characters to ASCII."""
    if text.isascii():
        return text
    known = {**_ASCII_DRAWINGS, **shapes}
    return "".join(char if char.isascii() else known.get(char, "?" * _char_width(char)) for char in text)


def escape_json(text: str) -> str:
    """The same JSON with escapes for all invisible characters and all that steer a terminal."""
    if text.isascii() and text.isprintable():
        return text
    units = ((char, char.encode("utf-16-be", "surrogatepass").hex()) for char in text)
    return "".join(
        char if clean(char) == char and char != _JOINER else _HEX_UNIT.sub(r"\\u\1", code)
        for char, code in units
    )


def short_id(call: str) -> str:
    """The end of an id. An id begins with its time, so that ids of one moment begin alike."""
    return call[-SHORT_ID_CHARS:]


def short_question_id(question: str) -> str:
    """A question's id with the short id of its call."""
    call, _, number = question.rpartition(".")
    return f"{short_id(call)}.{number}"


def short_tool_name(tool: str, width: int = 16) -> str:
    """A tool's name, cut at its front: the end of a browser tool's name says what it does."""
    tool = clean(tool[-8 * width :])
    if display_width(tool) <= width:
        return tool
    start = len(tool)
    while start and display_width(tool[start - 1 :]) < width:
        start -= 1
    return f"…{tool[start:]}"


def format_elapsed(seconds: float) -> str:
    """An elapsed time: 0:07, 12:40, 1:02:03."""
    minutes, rest = divmod(max(0, int(seconds)), 60)
    return f"{minutes}:{rest:02}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def format_span(seconds: float) -> str:
    """A span of time in a column: 8.4 s below ten seconds, then 0:42, 12:05, 1:02:03."""
    return f"{max(0.0, seconds):.1f} s" if seconds < 9.95 else format_elapsed(max(10.0, seconds))


def format_left(seconds: float) -> str:
    """A time that is left, or a limit: 5.6 s below ten seconds, then whole ones, rounded up.

    A time that was used is rounded down, so the two add up to the limit.
    """
    return format_span(seconds) if seconds < 9.95 else format_elapsed(ceil(seconds))


def format_estimate(eta: Eta | None) -> str:
    """The time left, as one number: ~1:24; empty if it is unknown."""
    return "" if eta is None else f"~{format_elapsed(max(1, int(eta.left_s + 0.5)))}"


def format_percent(share: float) -> str:
    """A part of the whole as per cent: 60 %; all of it only at the end."""
    return f"{int(share * 100 + 1e-9)} %"


def progress_share(reading: Reading | None) -> float | None:
    """The part that is done, from 0 to 1; None if that is unknown."""
    if reading is None or reading.progress is None or not reading.total or reading.total < 0:
        return None
    return min(1.0, max(0.0, reading.progress / reading.total))


def format_time(instant: float) -> str:
    """An instant: the time of day, and the date if it is not today."""
    when = time.localtime(instant)
    today = time.strftime("%Y-%m-%d", when) == time.strftime("%Y-%m-%d")
    return time.strftime("%H:%M:%S" if today else "%Y-%m-%d %H:%M:%S", when)


def format_progress(progress: float | None, total: float | None, source: str = "tool") -> str:
    """Progress: 3/20, or 3 if there is no total; 21 % if child calls have made it."""
    if progress is None:
        return ""
    if source == "below" and total:
        return format_share(progress, total)
    return format_number(progress) if total is None else f"{format_number(progress)}/{format_number(total)}"


def _mark_joiner(found: re.Match[str]) -> str:
    """A zero-width joiner between two emoji as it is, elsewhere its mark."""
    text, place = found.string, found.start()
    around = text[max(0, place - 2) : place].rstrip("\ufe0f")[-1:] + text[place + 1 : place + 2]
    is_emoji = len(around) == 2 and all(unicodedata.category(one) in ("So", "Sk") for one in around)
    return _JOINER if is_emoji else "⟨U+200D⟩"


def _char_width(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
