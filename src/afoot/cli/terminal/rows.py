"""`call_row` and `call_table` draw calls as styled lines that fit a width.

A row shows the state as a word and a shape, a bar, the progress, the time and the message. The table
shows live calls as trees, and then the calls that have just ended. Pure: no terminal is touched here.
"""

from collections.abc import Iterator
from itertools import islice

from msgspec import Struct

from afoot.cli.terminal.live_state import CallNode, LiveState, shown_children
from afoot.cli.terminal.text import (
    clean,
    display_width,
    failure_text,
    format_clock,
    format_progress,
    format_rate,
    pad,
    short_id,
    short_tool_name,
    truncate,
)
from afoot.core.call import Call, State
from afoot.observe.eta import describe_eta

StyledText = tuple[str, str]  # a text and its style
StyledLine = list[StyledText]
# Shape and style of each displayed state; the key is the word that is shown.
STATE_STYLES = {
    "queued": ("○", "dim"),
    "starting": ("◔", "dim"),
    "running": ("▶", "live"),
    "waiting": ("◆", "warn"),
    "stalled": ("◌", "warn"),
    "cancelling": ("◐", "warn"),
    "ok": ("✓", "good"),
    "failed": ("✗", "bad"),
    "refused": ("⊘", "warn"),
    "cancelled": ("■", "warn"),
    "timed out": ("◷", "bad"),
    "lost": ("?", "bad"),
    "uncertain": ("?", "bad"),
}
# By the least width of the screen: the columns that are shown, and their widths.
# The rest of a line is the message.
_COLUMN_SETS: tuple[tuple[int, dict[str, int]], ...] = (
    (136, {"state": 12, "tool": 26, "call": 8, "bar": 20, "far": 11, "time": 8, "eta": 20, "pace": 8,
           "by": 12}),
    (104, {"state": 12, "tool": 20, "call": 8, "bar": 12, "far": 10, "time": 7, "eta": 20}),
    (76, {"state": 12, "tool": 14, "call": 8, "bar": 8, "far": 8, "time": 6}),
    (60, {"state": 12, "tool": 14, "bar": 8, "far": 8, "time": 6}),
    (38, {"state": 12, "tool": 10, "far": 8, "time": 5}),
    (0, {"state": 1, "tool": 10, "far": 8}),
)  # fmt: skip
_COLUMN_TITLES = {
    "state": "STATE", "tool": "TOOL", "call": "CALL", "bar": "", "far": "DONE", "time": "TIME", "eta": "LEFT",
    "pace": "PACE", "by": "CALLER", "said": "SAYS",
}  # fmt: skip
PULSE_HZ = 5
MAX_CHILDREN = 5  # child calls shown below one call
MAX_NUMBERED = 9  # open questions that a digit key can choose


class Columns(Struct, frozen=True):
    """The columns of a table that fit a width."""

    width: int
    widths: dict[str, int]
    message_width: int  # the rest of the line

    def shows(self, column: str) -> bool:
        """Whether this column is shown."""
        return column in self.widths


def title_line(live_state: LiveState, url: str, problem: str, width: int) -> StyledLine:
    """The first line of the dashboard: the gateway, and its problem or the number of calls by state."""
    counts = live_state.count_by_state()
    words = [
        f"{counts[one]} {one}" for one in ("running", "waiting", "queued", "cancelling") if one in counts
    ]
    summary = ", ".join(words) or ("nothing runs" if live_state.now else "looking")
    line = [("afoot ", "bold"), (truncate(url, 40), ""), ("  ", "")]
    if problem:
        line.append((f"! {clean(problem)}", "bad"))
    elif live_state.degraded:
        line.append((f"! history: {clean(live_state.degraded)}", "bad"))
    else:
        line.append((summary, ""))
    keys = "?: keys"
    used = sum(display_width(text) for text, _ in line)
    gap = width - used - len(keys)
    return [*line, (" " * gap + keys, "dim")] if gap > 1 else line


def call_table(live_state: LiveState, width: int, most: int, skip: int = 0) -> list[StyledLine]:
    """Draw calls as at most `most` lines, from row `skip` on; the last line counts those that do not fit."""
    if most <= 0:
        return []
    columns = choose_columns(width)
    lines = [header_line(columns)] if most > 3 else []
    room = most - len(lines)
    rows = list(islice(_rows(live_state, columns), skip, skip + room + 1))
    is_whole = not skip and len(rows) <= room
    rows = rows if is_whole else rows[: room - 1]
    lines += [line for line, _ in rows]
    hidden = len(live_state.calls) + len(live_state.ended) - sum(count for _, count in rows)
    if not is_whole and hidden > 0:
        lines.append(
            [(truncate(f"… {hidden} more that do not fit; the arrows move the table", width), "dim")]
        )
    return lines


def _rows(live_state: LiveState, columns: Columns) -> Iterator[tuple[StyledLine, int]]:
    """All rows, each with the number of calls it stands for; rows that nobody takes are not rendered."""
    for node in (*live_state.roots.values(), *reversed(live_state.ended)):
        yield from tree_rows(node, live_state.now, columns)


def question_lines(live_state: LiveState, width: int, most: int) -> list[StyledLine]:
    """The open questions for a person, each with the digit key that chooses it."""
    asked = list(live_state.open_questions.values())
    if not asked or most < 2:
        return []
    lines: list[StyledLine] = [
        [("waits for you", "warn"), ("  (its number answers it)" if width > 45 else "", "dim")]
    ]
    shown = min(MAX_NUMBERED, most - 1, len(asked))
    shown -= shown < len(asked) and most - 1 == shown
    for number, (node, question) in enumerate(asked[:shown], 1):
        since = format_clock(live_state.now - node.call.asked_at.get(question.id, live_state.now))
        who = f"{number} {since} {short_id(node.call.id)} "
        text = question.message or question.kind
        lines.append([(who, "bold"), (truncate(text, width - len(who)), "")])
    if shown < len(asked):
        lines.append([(f"… {len(asked) - shown} more", "dim")])
    return lines


def tree_rows(
    node: CallNode, now: float, columns: Columns, depth: int = 0
) -> Iterator[tuple[StyledLine, int]]:
    """The rows of a call and of its children; many children are collapsed into one row.

    Each row comes with the number of calls it stands for.
    """
    yield call_row(node, now, columns, depth), int(depth == 0 or node.call.end is None)
    shown = list(islice(shown_children(node), MAX_CHILDREN))
    for one in shown:
        yield from tree_rows(one, now, columns, depth + 1)
    more = node.child_count - len(shown)
    if more > 0 and node.call.end is None:
        lead = " " * (columns.widths["state"] + 1 + 2 * min(depth, 4))
        failed = f", {node.failed_count} failed" if node.failed_count else ""
        yield [(f"{lead}… {more} more{failed}", "dim")], max(0, len(node.live_children) - len(shown))


def choose_columns(width: int) -> Columns:
    """The columns that fit a width; a row is never wider than this."""
    widths = next(found for least, found in _COLUMN_SETS if width >= least)
    left_over = width - sum(widths.values()) - len(widths)
    return Columns(width, widths, max(0, left_over))


def header_line(columns: Columns) -> StyledLine:
    """The line with the titles of the columns."""
    names = [pad(_COLUMN_TITLES[column], width) for column, width in columns.widths.items()]
    return [
        (
            truncate(
                " ".join([*names, truncate(_COLUMN_TITLES["said"], columns.message_width)]).rstrip(),
                columns.width,
            ),
            "dim",
        )
    ]


def call_row(node: CallNode, now: float, columns: Columns, depth: int = 0) -> StyledLine:
    """A call as one row; `depth` is its depth in the tree."""
    call = node.call
    kind = display_state(call, node.stalled)
    shape, style = STATE_STYLES.get(kind, ("?", ""))
    texts = {
        "tool": _tool_text(call, columns.widths["tool"], depth),
        "call": short_id(call.id),
        "far": _progress_text(call),
        "time": _elapsed_text(call, now),
        "eta": describe_eta(node.eta, now - node.estimated_at),
        "pace": format_rate(node.rate),
        "by": call.opened.caller,
    }
    line: StyledLine = []
    for column, width in columns.widths.items():
        if column == "state":
            line.append((pad(f"{shape} {kind}" if width > 1 else shape, width), style))
        elif column == "bar":
            line += progress_bar(call, now, width)
        else:
            line.append((pad(texts[column], width), "bold" if column == "tool" else ""))
        line.append((" ", ""))
    said = (
        status_text(call)
        if columns.shows("eta") or call.end is not None
        else _join_texts(texts["eta"], status_text(call))
    )
    line.append((truncate(said, columns.message_width), "dim" if call.end is not None else ""))
    return cut_line(line, columns.width)


def single_call_line(node: CallNode, now: float, width: int) -> StyledLine:
    """The line of a call that is followed alone: the full state word and a longer bar."""
    call = node.call
    kind = display_state(call, node.stalled)
    shape, style = STATE_STYLES[kind]
    word = waiting_text(call) if kind == "waiting" else kind
    since = format_clock(now - call.opened.at)
    line: StyledLine = [
        (f"{shape} {word} ", style),
        (short_tool_name(call.opened.tool, max(8, width // 5)), "bold"),
        (" ", ""),
    ]
    line += [
        *progress_bar(call, now, min(24, max(4, width // 4))),
        (f" {_join_texts(_progress_text(call), since, sign=' ')} ", ""),
    ]
    left_over = width - sum(display_width(text) for text, _ in line)
    said = "" if kind == "waiting" else status_text(call)
    line.append(
        (truncate(_join_texts(describe_eta(node.eta, now - node.estimated_at), said), max(0, left_over)), "")
    )
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


def display_state(call: Call, stalled: bool = False) -> str:
    """The displayed state of a call, a key of STATE_STYLES."""
    if call.end is not None:
        return call.end.outcome.replace("_", " ")
    if call.state is State.CANCELLING:
        return "cancelling"
    if call.open:
        return "waiting"
    if call.state is State.QUEUED:
        return "queued" if call.admitted is None else "starting"
    return "stalled" if stalled else call.state.value


def status_text(call: Call) -> str:
    """The text about a call beside its numbers: failure, cancel reason, question, or last message."""
    if call.end is not None and call.end.failure is not None:
        return failure_text(call.end)
    if call.cancel is not None:
        return call.cancel.reason
    if call.open:
        return waiting_text(call)
    if call.state is State.QUEUED and call.admitted is not None:
        return call.admitted.what
    if call.hindered is not None:
        return call.hindered.by
    return (call.latest.message if call.latest is not None else None) or ""


def waiting_text(call: Call) -> str:
    """The text of a call that waits for somebody."""
    kinds = {one.kind for one in call.open.values()}
    if "approval" in kinds:
        return "waiting for approval"
    return "waiting for a call below" if kinds == {"below"} else "waiting for an answer"


def progress_bar(call: Call, now: float, width: int) -> StyledLine:
    """A progress bar; without a known total, a moving pulse while the call runs."""
    latest = call.latest
    share = None
    if latest is not None and latest.progress is not None and latest.total is not None and latest.total > 0:
        share = min(1.0, max(0.0, latest.progress / latest.total))
    style = "live" if call.end is None else STATE_STYLES.get(display_state(call), ("", "dim"))[1]
    if share is not None:
        done = round(share * width)
        return [("━" * done, style), ("─" * (width - done), "dim")]
    if call.end is not None or call.state is not State.RUNNING or call.open:
        return [("─" * width, "dim")]
    size = max(1, width // 4)
    place = int(now * PULSE_HZ) % width
    lit = {(place + step) % width for step in range(size)}
    return [("".join("━" if one in lit else "─" for one in range(width)), "live")]


def _elapsed_text(call: Call, now: float) -> str:
    """The duration so far; a call that took less than a minute shows tenths of seconds."""
    if call.end is None or call.end.at - call.opened.at >= 60:
        return format_clock((now if call.end is None else call.end.at) - call.opened.at)
    return f"{call.end.at - call.opened.at:.1f} s"


def _progress_text(call: Call) -> str:
    latest = call.latest
    return "" if latest is None else format_progress(latest.progress, latest.total, latest.source)


def _tool_text(call: Call, width: int, depth: int) -> str:
    deepest = max(0, width - 10) // 2  # at least 10 columns stay for the name
    lead = "" if not depth else "  " * min(depth - 1, deepest) + "└ "
    return lead + short_tool_name(call.opened.tool, max(4, width - len(lead)))


def _join_texts(*parts: str, sign: str = "; ") -> str:
    return sign.join(part for part in parts if part)
