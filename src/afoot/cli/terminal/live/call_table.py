"""`call_table` lists calls in the groups of the console: those that wait for a person, run, and just ended.

Calls below a call stand below it, and many calls of one tool are one line. Pure: no terminal is touched.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

from msgspec import Struct

from afoot.cli.terminal.call_clocks import has_own_question, time_on_clock
from afoot.cli.terminal.call_words import COUNTED_STATES, STATES, state_of
from afoot.cli.terminal.live.call_rows import (
    Columns,
    StyledLine,
    call_rows,
    choose_columns,
    cut_line,
    header_line,
)
from afoot.cli.terminal.live.live_state import CallNode, LiveState, remote_children, shown_children
from afoot.cli.terminal.text import clean, display_width, format_span, truncate
from afoot.core.call import State

MAX_CHILDREN = 5  # child calls shown below one call
MAX_REMOTE_DEPTH = 16  # of calls at a gateway behind this one: it could say that one is below itself
MAX_PINNED = 6  # waiting calls that stay in view while the table moves
MAX_NUMBERED = 9  # open questions that a digit key can choose
FOLD_ABOVE = 50  # calls of one tool in a group that are one line by themselves
IDLE = "Nothing runs now. A call appears here the moment an agent makes one."


class Table(Struct, frozen=True):
    """The lines of a table, and the row that they begin with."""

    lines: list[StyledLine]
    first_row: int = 0


class TableRow(Struct, frozen=True):
    """The lines of a call, of the head of a group, or of many calls; `count`: how many calls that is."""

    lines: list[StyledLine]
    count: int = 0


def title_line(live_state: LiveState, url: str, width: int) -> StyledLine:
    """The first line of the dashboard: the gateway, and the number of calls by state."""
    counts = count_by_state(live_state)
    words = [f"{counts[one]:,} {STATES[one].word}" for one in COUNTED_STATES if counts[one]]
    summary = ", ".join(words) or ("nothing runs" if live_state.now else "looking")
    keys = "?: keys"
    room = width - len(f"afoot  {summary}  {keys}")
    where = f"{truncate(url, 40)}  " if len(url[:40]) + 2 <= room else ""
    line = cut_line([("afoot ", "bold"), (where, ""), (summary, "")], width)
    gap = width - sum(display_width(text) for text, _ in line) - len(keys)
    return [*line, (" " * gap + keys, "dim")] if gap > 1 else line


def count_by_state(live_state: LiveState) -> Counter[str]:
    """The live calls by state; one that is tried again or cancelled counts as running."""
    found = Counter(state_of(node, live_state.now) for node in live_state.calls.values())
    found["running"] += found.pop("retrying", 0) + found.pop("cancelling", 0)
    return found


def call_table(
    live_state: LiveState, width: int, most: int, skip: int = 0, *, is_unfolded: bool = False
) -> Table:
    """At most `most` lines, from row `skip` on; the last line counts the calls that do not fit.

    A few waiting calls stay at the top whatever is skipped. `is_unfolded`: each call has a row of its own.
    """
    total = len(live_state.calls) + len(live_state.ended)
    if most <= 0 or not total:
        is_idle = most > 0 and live_state.now > 0
        return Table([[(truncate(IDLE, width), "dim")]] if is_idle else [])
    columns = choose_columns(width)
    pinned = list(_waiting_rows(live_state, columns)) if len(live_state.waiting) <= MAX_PINNED else []
    pinned = pinned if _height(pinned) <= most // 2 else []  # they come first all the same, and move
    rows = _rows(live_state, columns, is_unfolded=is_unfolded, has_waiting=not pinned)
    lines = [] if most <= 3 or columns.is_narrow else [header_line(columns)]
    lines += [line for row in pinned for line in row.lines]
    found = list(islice(rows, skip + most + 1))
    first = min(skip, max(0, len(found) - 1))
    shown, is_whole = _fitting(found[first:], most - len(lines) - (first > 0))
    lines += [line for row in shown for line in row.lines]
    hidden = total - sum(row.count for row in (*pinned, *shown))
    if hidden > 0 and (first or not is_whole):
        words = f"… {hidden:,} more that do not fit; the arrows move the table"
        lines = [*lines[: most - 1], [(truncate(words, width), "dim")]]
    return Table(lines, first)


def _fitting(rows: Sequence[TableRow], room: int) -> tuple[list[TableRow], bool]:
    """The rows that fit, with a line to spare if there are more of them; and whether these are all."""
    found: list[TableRow] = []
    for row in rows:
        if _height([*found, row]) > room:
            while found and _height(found) > room - 1:
                found.pop()
            return found, False
        found.append(row)
    return found, True


def _height(rows: Sequence[TableRow]) -> int:
    return sum(len(row.lines) for row in rows)


def _rows(
    live_state: LiveState, columns: Columns, *, is_unfolded: bool, has_waiting: bool
) -> Iterator[TableRow]:
    """The rows of all groups; those that nobody takes are not rendered."""
    if has_waiting:
        yield from _waiting_rows(live_state, columns)
    yield from _running_rows(live_state, columns, is_unfolded)
    yield from _ended_rows(live_state, columns, is_unfolded)


def _waiting_rows(live_state: LiveState, columns: Columns) -> Iterator[TableRow]:
    if not live_state.waiting:
        return
    note = "clocks stand still; time left to answer"
    yield _head("Waiting for you", f"{len(live_state.waiting):,}", note, columns)
    asked = live_state.questions_in_order()
    keys = {node.call.id: f"{number}" for number, (node, _) in enumerate(asked[:MAX_NUMBERED], 1)}
    for name, node in live_state.waiting.items():
        yield TableRow(call_rows(node, live_state.now, columns, key=keys.get(name, "")), 1)


def _running_rows(live_state: LiveState, columns: Columns, is_unfolded: bool) -> Iterator[TableRow]:
    live = len(live_state.calls) - len(live_state.waiting)
    tops = list(_running_tops(live_state))
    if not tops:
        return
    queued = sum(map(_is_queued, live_state.calls.values()))
    count = f"{live - queued:,}" + f", and {queued:,} queued" * (queued > 0)
    yield _head("Running", count, "", columns)
    yield from _folded(tops, live_state, columns, is_unfolded)


def _running_tops(live_state: LiveState) -> Iterator[CallNode]:
    """The calls without a call above them in this group: roots, and children of a root that waits."""
    for root in live_state.roots.values():
        if root.call.id not in live_state.waiting:
            yield root
    for node in live_state.waiting.values():
        if not _has_place(node, live_state):
            yield from (one for name, one in node.live_children.items() if name not in live_state.waiting)


def _has_place(node: CallNode, live_state: LiveState) -> bool:
    """Whether a waiting call also stands in the tree of a call above it, with the calls below it."""
    above = node.above
    return above is not None and (above.call.id not in live_state.waiting or _has_place(above, live_state))


def _is_queued(node: CallNode) -> bool:
    """Whether `state_of` says queued, without a look at the clocks of thousands of calls."""
    call = node.call
    is_first = call.state is State.QUEUED and not call.attempt and node.cancel_due is None
    return is_first and not _is_waiting(node)


def _ended_rows(live_state: LiveState, columns: Columns, is_unfolded: bool) -> Iterator[TableRow]:
    if live_state.ended:
        yield _head("Just ended", f"{len(live_state.ended):,}", "kept here for 5:00", columns)
        yield from _folded(list(reversed(live_state.ended)), live_state, columns, is_unfolded)


def _folded(
    tops: Sequence[CallNode], live_state: LiveState, columns: Columns, is_unfolded: bool
) -> Iterator[TableRow]:
    """The trees of a group. Many calls of one tool are one row, at the place of the first."""
    runs: dict[str, list[CallNode]] = {}
    if len(tops) > FOLD_ABOVE and not is_unfolded:
        for node in tops:
            runs.setdefault(node.call.opened.tool, []).append(node)
    for node in tops:
        tool = node.call.opened.tool
        run = runs.get(tool, ())
        if len(run) <= FOLD_ABOVE:
            yield from tree_rows(node, live_state.now, columns)
        elif node is run[0]:
            summary = f"  {_summary(run, live_state.now)}"
            line: StyledLine = [("▸ ", "dim"), (clean(tool), "bold"), (summary, "")]
            count = len(run) if node.call.end is not None else sum(map(_live_count, run))
            yield TableRow([cut_line(line, columns.width)], count)


def _summary(run: Sequence[CallNode], at: float) -> str:
    """How many of these calls are in which state, and the longest time on the clock."""
    counts = Counter(state_of(node, at) for node in run)
    words = [f"{count:,} {STATES[state].word}" for state, count in counts.items()]
    slowest_s = max(time_on_clock(node.call, at) for node in run)
    return ", ".join([*words, f"slowest {format_span(slowest_s)}"])


def _live_count(node: CallNode) -> int:
    return (node.call.end is None) + sum(map(_live_count, node.live_children.values()))


def tree_rows(node: CallNode, at: float, columns: Columns, depth: int = 0) -> Iterator[TableRow]:
    """The rows of a call and of its children; many children are collapsed into one row.

    A child that waits for a person keeps its place, and is counted among those that wait. Of an ended tree
    only the first call is shown.
    """
    is_over = node.call.end is not None and not node.live_children
    is_counted = is_over and depth == 0 or node.call.end is None and not _is_waiting(node)
    yield TableRow(call_rows(node, at, columns, depth), int(is_counted))
    if is_over:
        return
    shown = list(islice(shown_children(node), MAX_CHILDREN))
    for one in shown:
        yield from tree_rows(one, at, columns, depth + 1)
    far = list(remote_children(node))
    for one in far[: MAX_CHILDREN - len(shown)]:
        yield from _remote_rows(one, at, columns, depth + 1)
    more = node.child_count + len(far) - min(MAX_CHILDREN, len(shown) + len(far))
    if more > 0:
        lead = " " * (columns.widths.get("state", 1) + 1 + 2 * min(depth, 4))
        failed = f", {node.failed_count:,} failed" if node.failed_count else ""
        line = cut_line([(f"{lead}… {more:,} more{failed}", "dim")], columns.width)
        hidden = islice(node.live_children.values(), len(shown), None)
        yield TableRow([line], sum(not _is_waiting(one) for one in hidden))


def _remote_rows(node: CallNode, at: float, columns: Columns, depth: int) -> Iterator[TableRow]:
    """The rows of a call at a gateway behind this one, which are not counted here, and of those below it."""
    yield TableRow(call_rows(node, at, columns, depth))
    if depth < MAX_REMOTE_DEPTH:
        for one in islice(remote_children(node, node.call.id), MAX_CHILDREN):
            yield from _remote_rows(one, at, columns, depth + 1)


def _is_waiting(node: CallNode) -> bool:
    return bool(node.call.open) and has_own_question(node.call)


def _head(title: str, count: str, note: str, columns: Columns) -> TableRow:
    """The head of a group: its title, the number of its calls, and a note at the right where it fits."""
    gap = columns.width - len(title) - 2 - len(count) - len(note)
    line: StyledLine = [(title, "bold"), (f"  {count}", "dim")]
    return TableRow(
        [cut_line([*line, (" " * gap + note, "dim")] if note and gap > 1 else line, columns.width)]
    )
