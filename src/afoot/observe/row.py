"""One call as a row: its state as a word and a shape, a bar, how far, how long, and what it says; pure."""

from msgspec import Struct

from afoot.core.call import Call, State
from afoot.observe.scene import Node
from afoot.observe.terminal import (
    amount,
    cells,
    cut,
    left,
    name,
    pace,
    padded,
    passed,
    short,
    why,
)

Span = tuple[str, str]  # a text and its style
Line = list[Span]

# By what a call is: its shape and its style. The word is the key itself.
KINDS = {
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

# From so many columns on: what is shown, how wide. What is left is for what the call says.
_TIERS: tuple[tuple[int, dict[str, int]], ...] = (
    (136, {"state": 12, "tool": 26, "call": 8, "bar": 20, "far": 11, "time": 8, "eta": 20, "pace": 8,
           "by": 12}),
    (104, {"state": 12, "tool": 20, "call": 8, "bar": 12, "far": 10, "time": 7, "eta": 20}),
    (76, {"state": 12, "tool": 14, "call": 8, "bar": 8, "far": 8, "time": 6}),
    (60, {"state": 12, "tool": 14, "bar": 8, "far": 8, "time": 6}),
    (38, {"state": 12, "tool": 10, "far": 8, "time": 5}),
    (0, {"state": 1, "tool": 10, "far": 8}),
)  # fmt: skip
_HEADS = {
    "state": "STATE", "tool": "TOOL", "call": "CALL", "bar": "", "far": "DONE", "time": "TIME", "eta": "LEFT",
    "pace": "PACE", "by": "CALLER", "said": "SAYS",
}  # fmt: skip
PULSE_HZ = 5


class Columns(Struct, frozen=True):
    """What fits a width."""

    wide: int
    widths: dict[str, int]
    said: int  # what is left

    def shows(self, column: str) -> bool:
        """Whether it has room."""
        return column in self.widths


def columns(wide: int) -> Columns:
    """The columns that fit; a row is never wider than this."""
    widths = next(found for least, found in _TIERS if wide >= least)
    left_over = wide - sum(widths.values()) - len(widths)
    return Columns(wide, widths, max(0, left_over))


def head(fit: Columns) -> Line:
    """The names of the columns."""
    names = [padded(_HEADS[column], width) for column, width in fit.widths.items()]
    return [(cut(" ".join([*names, cut(_HEADS["said"], fit.said)]).rstrip(), fit.wide), "dim")]


def row(node: Node, now: float, fit: Columns, depth: int = 0) -> Line:
    """A call; `depth`: how far below others it is."""
    call = node.call
    kind = kind_of(call, node.stalled)
    shape, style = KINDS.get(kind, ("?", ""))
    texts = {
        "tool": _named(call, fit.widths["tool"], depth),
        "call": short(call.id),
        "far": _far(call),
        "time": _lasted(call, now),
        "eta": left(node.eta, now - node.said),
        "pace": pace(node.rate),
        "by": call.opened.caller,
    }
    line: Line = []
    for column, width in fit.widths.items():
        if column == "state":
            line.append((padded(f"{shape} {kind}" if width > 1 else shape, width), style))
        elif column == "bar":
            line += bar(call, now, width)
        else:
            line.append((padded(texts[column], width), "bold" if column == "tool" else ""))
        line.append((" ", ""))
    said = says(call) if fit.shows("eta") or call.end is not None else _joined(texts["eta"], says(call))
    line.append((cut(said, fit.said), "dim" if call.end is not None else ""))
    return fitted(line, fit.wide)


def alone(node: Node, now: float, wide: int) -> Line:
    """The same of a call that is followed alone: its state in full, and a longer bar."""
    call = node.call
    kind = kind_of(call, node.stalled)
    shape, style = KINDS[kind]
    word = awaited(call) if kind == "waiting" else kind
    since = passed(now - call.opened.at)
    line: Line = [(f"{shape} {word} ", style), (name(call.opened.tool, max(8, wide // 5)), "bold"), (" ", "")]
    line += [*bar(call, now, min(24, max(4, wide // 4))), (f" {_joined(_far(call), since, sign=' ')} ", "")]
    left_over = wide - sum(cells(text) for text, _ in line)
    said = "" if kind == "waiting" else says(call)
    line.append((cut(_joined(left(node.eta, now - node.said), said), max(0, left_over)), ""))
    return fitted(line, wide)


def fitted(line: Line, wide: int) -> Line:
    """The line, cut where the screen ends."""
    found: Line = []
    for text, style in line:
        room = wide - sum(cells(part) for part, _ in found)
        if cells(text) > room:
            return [*found, (cut(text, room), style)]
        found.append((text, style))
    return found


def kind_of(call: Call, stalled: bool = False) -> str:
    """What it is, in a word."""
    if call.end is not None:
        return call.end.outcome.replace("_", " ")
    if call.state is State.CANCELLING:
        return "cancelling"
    if call.open:
        return "waiting"
    if call.state is State.QUEUED:
        return "queued" if call.admitted is None else "starting"
    return "stalled" if stalled else call.state.value


def says(call: Call) -> str:
    """What is to be known of it now besides its numbers."""
    if call.end is not None and call.end.failure is not None:
        return why(call.end)
    if call.cancel is not None:
        return call.cancel.reason
    if call.open:
        return awaited(call)
    if call.state is State.QUEUED and call.admitted is not None:
        return call.admitted.what
    if call.hindered is not None:
        return call.hindered.by
    return (call.latest.message if call.latest is not None else None) or ""


def awaited(call: Call) -> str:
    """What it waits for."""
    kinds = {one.kind for one in call.open.values()}
    if "approval" in kinds:
        return "waiting for approval"
    return "waiting for a call below" if kinds == {"below"} else "waiting for an answer"


def bar(call: Call, now: float, width: int) -> Line:
    """A bar as far as it has come; where nobody knows, a pulse while it runs."""
    latest = call.latest
    share = None
    if latest is not None and latest.progress is not None and latest.total is not None and latest.total > 0:
        share = min(1.0, max(0.0, latest.progress / latest.total))
    style = "live" if call.end is None else KINDS.get(kind_of(call), ("", "dim"))[1]
    if share is not None:
        done = round(share * width)
        return [("━" * done, style), ("─" * (width - done), "dim")]
    if call.end is not None or call.state is not State.RUNNING or call.open:
        return [("─" * width, "dim")]
    size = max(1, width // 4)
    place = int(now * PULSE_HZ) % width
    lit = {(place + step) % width for step in range(size)}
    return [("".join("━" if one in lit else "─" for one in range(width)), "live")]


def _lasted(call: Call, now: float) -> str:
    """How long it has lasted; of a short one that is over, more exactly."""
    if call.end is None or call.end.at - call.opened.at >= 60:
        return passed((now if call.end is None else call.end.at) - call.opened.at)
    return f"{call.end.at - call.opened.at:.1f} s"


def _far(call: Call) -> str:
    return "" if call.latest is None else amount(call.latest.progress, call.latest.total)


def _named(call: Call, width: int, depth: int) -> str:
    deepest = max(0, width - 10) // 2  # the name keeps some room
    lead = "" if not depth else "  " * min(depth - 1, deepest) + "└ "
    return lead + name(call.opened.tool, max(4, width - len(lead)))


def _joined(*parts: str, sign: str = "; ") -> str:
    return sign.join(part for part in parts if part)
