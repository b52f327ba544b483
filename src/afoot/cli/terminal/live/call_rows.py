"""`call_rows` draws a call as styled lines that fit a width; `single_call_line` one that is followed alone.

A row shows the state, the tool, a bar, per cent, the time left, both clocks, and a warning or the last
message. The columns, figures and words are those of the console's live view. Pure: no terminal is touched.
"""

from collections.abc import Mapping

from msgspec import Struct

from afoot.cli.terminal.call_clocks import ClockReading, read_clocks
from afoot.cli.terminal.call_words import (
    DESTRUCTIVE,
    STATES,
    join_words,
    last_words,
    state_of,
    tags,
    time_left,
    waiting_text,
    warning,
)
from afoot.cli.terminal.live.live_state import CallNode, can_withdraw
from afoot.cli.terminal.text import (
    clean,
    display_width,
    format_left,
    format_percent,
    format_span,
    pad,
    progress_share,
    short_id,
    short_tool_name,
    truncate,
)
from afoot.core.call import Call
from afoot.core.number_format import format_number

StyledText = tuple[str, str]  # a text and its style
StyledLine = list[StyledText]
# By the least width of the screen: the columns that are shown, and their widths. The rest of a line is the
# message, which stands last: a terminal may draw a tool's characters wider than is known here.
_COLUMN_SETS: tuple[tuple[int, dict[str, int]], ...] = (
    (160, {"state": 14, "tool": 30, "progress": 22, "left": 8, "silent": 16, "elapsed": 18, "call": 8,
           "caller": 14}),
    (116, {"state": 14, "tool": 18, "progress": 14, "left": 6, "silent": 15, "elapsed": 13, "call": 8}),
    (96, {"state": 1, "tool": 18, "progress": 14, "left": 6, "silent": 7, "elapsed": 7, "call": 8}),
    (76, {"state": 1, "tool": 14, "progress": 12, "silent": 7, "elapsed": 7, "call": 8}),
    (56, {"state": 1, "tool": 12, "progress": 5, "silent": 7, "elapsed": 7}),
)  # fmt: skip
_PERCENT_WIDTH = 5  # at the end of the progress; a bar stands before it where there is room
_RIGHT_ALIGNED = ("left", "silent", "elapsed")
# A narrow row has two lines: the state, the tool, per cent and the id; then both clocks and the message.
_NARROW_FIGURES = {"silent": 7, "elapsed": 7}
_INDENT = 2  # of the second line, and of each level of a tree
_RING = "○◔◑◕●"  # the silence that is left, from none to all
_PAUSE = "‖"
PULSE_HZ = 5
UNDO = "u: undo"  # before the words of a cancel that can be withdrawn
_QUIET = ("queued", "cancelling", "done", "cancelled")  # states whose rows are drawn in softer ink


class Columns(Struct, frozen=True):
    """The columns of a table that fit a width; `is_narrow`: a row has two lines."""

    width: int
    widths: dict[str, int]
    message_width: int  # the rest of the line
    is_narrow: bool = False


class ShownCall(Struct, frozen=True):
    """A call as its row shows it at an instant."""

    node: CallNode
    at: float
    state: str
    clocks: ClockReading
    depth: int = 0
    key: str = ""  # that answers its question

    @property
    def style(self) -> str:
        """The style of its figures."""
        return "dim" if self.state in _QUIET else ""


def choose_columns(width: int) -> Columns:
    """The columns that fit a width; a row is never wider than this."""
    found = next((widths for least, widths in _COLUMN_SETS if width >= least), None)
    if found is None:
        figures = _INDENT + sum(_NARROW_FIGURES.values()) + len(_NARROW_FIGURES)
        return Columns(width, {}, max(0, width - figures), is_narrow=True)
    return Columns(width, found, max(0, width - sum(found.values()) - len(found)))


def header_line(columns: Columns) -> StyledLine:
    """The line with the titles of the columns."""
    titles = [
        _align(name, name.title() if width > 1 else "", width) for name, width in columns.widths.items()
    ]
    return cut_line([(" ".join([*titles, "Message"]), "dim")], columns.width)


def call_rows(node: CallNode, at: float, columns: Columns, depth: int = 0, key: str = "") -> list[StyledLine]:
    """A call as a row of one line, or of two on a narrow screen.

    `depth`: its depth in the tree. `key`: the key that answers its question.
    """
    shown = _shown_call(node, at, depth, key)
    if columns.is_narrow:
        tool_width = max(4, columns.width - 17)  # beside the state, per cent, the id, and the spaces between
        above = {"state": 1, "tool": tool_width, "progress": _PERCENT_WIDTH, "call": 8}
        lines = [_cells(shown, above), [(" " * _INDENT, ""), *_cells(shown, _NARROW_FIGURES)]]
    else:
        lines = [_cells(shown, columns.widths)]
    has_word = columns.widths.get("progress", 0) > _PERCENT_WIDTH
    if can_withdraw(node):
        lines[-1] += [(UNDO, "bold"), ("  ", "")]
    lines[-1] += _message(shown, columns.message_width, has_word=has_word, has_left="left" in columns.widths)
    return [cut_line(line, columns.width) for line in lines]


def single_call_line(node: CallNode, at: float, width: int) -> StyledLine:
    """The line of a call that is followed alone: the word of its state, and a longer bar."""
    shown = _shown_call(node, at)
    look = STATES[shown.state]
    word = waiting_text(node.call) if shown.state == "waiting" else look.word
    figures = join_words(_percent(node.call), _elapsed(shown), sign=" ")
    line: StyledLine = [
        (f"{look.shape} {word} ", look.style),
        (short_tool_name(node.call.opened.tool, max(8, width // 5)), "bold"),
        (" ", ""),
        *_progress_bar(shown, min(24, max(4, width // 4))),
        (f" {figures} ", ""),
    ]
    left_over = width - sum(display_width(text) for text, _ in line)
    if shown.state != "waiting":
        line += _message(shown, max(0, left_over), has_word=True)
    return cut_line(line, width)


def cut_line(line: StyledLine, width: int) -> StyledLine:
    """The line, cut at the width of the screen."""
    found: StyledLine = []
    for text, style in line:
        room = width - sum(display_width(part) for part, _ in found)
        if display_width(text) > room:
            return [*found, (truncate(text, room), style)]
        found.append((text, style))
    return found


def _shown_call(node: CallNode, at: float, depth: int = 0, key: str = "") -> ShownCall:
    return ShownCall(node, at, state_of(node, at), read_clocks(node.call, node.heard, at), depth, key)


def _cells(shown: ShownCall, widths: Mapping[str, int]) -> StyledLine:
    """The cells of a line, each exactly as wide as its column, and a space behind each."""
    return [part for column, width in widths.items() for part in (*_cell(column, width, shown), (" ", ""))]


def _cell(column: str, width: int, shown: ShownCall) -> StyledLine:
    text, style = "", shown.style
    match column:
        case "state":
            look = STATES[shown.state]
            text, style = (f"{look.shape} {look.word}" if width > 1 else look.shape), look.style
        case "tool":
            return _tool_cell(shown, width)
        case "progress":
            return _progress_cell(shown, width)
        case "left":
            text = time_left(shown.node, shown.state)
        case "silent":
            text, style = _silent(shown, width)
        case "elapsed":
            text = _elapsed(shown)
            if text and shown.clocks.frozen not in ("queued", "ended"):
                text = _with_limit(text, shown.clocks.ceiling_s, width)
            style = "bad" if shown.clocks.is_ceiling_last else style
        case "call":
            text, style = short_id(shown.node.call.id), "dim"
        case _:
            text, style = shown.node.call.opened.caller, "dim"
    return [(_align(column, text, width), style)]


def _align(column: str, text: str, width: int) -> str:
    if column not in _RIGHT_ALIGNED:
        return pad(text, width)
    text = truncate(text, width)
    return " " * (width - display_width(text)) + text


def _tool_cell(shown: ShownCall, width: int) -> StyledLine:
    """The name, indented below its parent; with its server, or the call above it, where there is room."""
    deepest = max(0, width - 10) // 2  # at least 10 columns stay for the name
    lead = "" if not shown.depth else "  " * min(shown.depth - 1, deepest) + "└ "
    name = short_tool_name(shown.node.call.opened.tool, max(4, width - len(lead)))
    room = width - len(lead) - display_width(name)
    above = shown.node.above
    place = ""
    if not shown.depth and above is not None and room > 6:
        place = f" in {clean(above.call.opened.tool)}"
    elif not shown.depth and above is None and len(shown.node.call.opened.server) < room:
        place = f" {clean(shown.node.call.opened.server)}"
    return [(lead, "dim"), (name, shown.style or "bold"), (pad(place, room), "dim")]


def _progress_cell(shown: ShownCall, width: int) -> StyledLine:
    """A bar and per cent; the key that answers a call that waits, and the word of one that is queued."""
    has_bar = width > _PERCENT_WIDTH
    if shown.state == "waiting" and shown.key:
        return [(pad(f"key {shown.key}" if has_bar else f"[{shown.key}]", width), "bold")]
    if shown.state == "waiting":
        return [(pad("asks you" if has_bar else "asks", width), "warn")]
    if shown.state == "queued":
        return [(pad(STATES[shown.state].word if has_bar else "", width), "dim")]
    bar = [*_progress_bar(shown, width - _PERCENT_WIDTH - 1), (" ", "")] if has_bar else []
    text = truncate(_percent(shown.node.call), _PERCENT_WIDTH)
    return [*bar, (" " * (_PERCENT_WIDTH - display_width(text)) + text, shown.style)]


def _progress_bar(shown: ShownCall, width: int) -> StyledLine:
    """A progress bar; without a known total, a moving pulse while the call runs."""
    call, look = shown.node.call, STATES[shown.state]
    share = 1.0 if shown.state == "done" else progress_share(call.latest)
    if share is not None:
        done = round(share * width)
        return [(look.bar * done, look.style), ("─" * (width - done), "dim")]
    if shown.state not in ("running", "retrying") or call.open:
        return [("─" * width, "dim")]
    size = max(1, width // 4)
    place = int(shown.at * PULSE_HZ) % width
    lit = {(place + step) % width for step in range(size)}
    return [("".join("━" if one in lit else "─" for one in range(width)), look.style)]


def _message(shown: ShownCall, width: int, *, has_word: bool = False, has_left: bool = False) -> StyledLine:
    """Tags and a warning first, then the last message.

    `has_word`: the word of the state stands elsewhere. `has_left`: the time left has a column of its own.
    """
    node, state = shown.node, shown.state
    warned = warning(node, state, shown.clocks)
    parts: list[StyledText] = [(tag, "bad" if tag == DESTRUCTIVE else "dim") for tag in tags(node)]
    parts.append((warned, "bold" if warned.startswith("held up") else "bad"))
    word = STATES[state].word if state in ("queued", "cancelling") and not has_word else ""
    left = "" if has_left or warned else time_left(node, state)
    words = join_words(word, left and f"{left} left", truncate(last_words(node, state, shown.at), width))
    parts.append((words, "bad" if state == "failed" else shown.style))
    line: StyledLine = []
    for text, style in parts:
        if text:
            line += [("  " if line else "", ""), (text, style)]
    return cut_line([(truncate(text, width), style) for text, style in line], width)


def _percent(call: Call) -> str:
    """Per cent, or how many without a total; a call that ended well is whole."""
    if call.end is not None and call.end.outcome == "ok":
        return format_percent(1.0)
    share = progress_share(call.latest)
    if share is not None:
        return format_percent(share)
    number = None if call.latest is None else call.latest.progress
    return "" if number is None else format_number(number)


def _silent(shown: ShownCall, width: int) -> StyledText:
    """The silence so far, behind a ring that empties; the time left to answer while a person is asked."""
    clocks = shown.clocks
    if shown.node.is_remote:
        return "", ""
    if clocks.frozen == "asked":
        return f"{_PAUSE} {format_left(clocks.answer_left_s or 0.0)}", "warn"
    if clocks.frozen:
        return (_PAUSE if clocks.frozen == "below" else ""), "warn"
    text = format_span(clocks.silent_s)
    if clocks.idle_s is not None:
        ring = _RING[min(len(_RING) - 1, int(clocks.silence_left * (len(_RING) - 1) + 0.5))]
        text = _with_limit(f"{ring} {text}", clocks.idle_s, width)
    return text, "bad" if clocks.is_silence_last else shown.style


def _elapsed(shown: ShownCall) -> str:
    """The time on the clock; the age of a call in the queue, and the duration of one that ended."""
    call = shown.node.call
    if shown.node.is_remote:
        return ""
    if call.end is not None:
        return format_span(call.end.at - call.opened.at)
    is_new = shown.clocks.frozen == "queued" and not shown.clocks.used_s
    return format_span(shown.at - call.opened.at if is_new else shown.clocks.used_s)


def _with_limit(text: str, limit_s: float, width: int) -> str:
    """A figure with its limit, where both fit."""
    whole = f"{text} of {format_left(limit_s)}"
    return whole if display_width(whole) <= width else text
