"""All calls that live as lines that fit a screen: trees, what has ended, what waits for a person; pure."""

from collections.abc import Iterator
from itertools import islice

from afoot.observe.row import Columns, Line, columns, head, row
from afoot.observe.scene import Node, Scene, below
from afoot.observe.terminal import cells, clean, cut, passed, short

BELOW = 5  # calls shown right below another
MOST_ASKED = 9  # questions that a key can choose


def title(scene: Scene, where: str, away: str, wide: int) -> Line:
    """The first line: which gateway, how it is, and how many calls are in which state."""
    counts = scene.counts()
    words = [
        f"{counts[one]} {one}" for one in ("running", "waiting", "queued", "cancelling") if one in counts
    ]
    told = ", ".join(words) or ("nothing runs" if scene.now else "looking")
    line = [("afoot ", "bold"), (cut(where, 40), ""), ("  ", "")]
    if away:
        line.append((f"! {clean(away)}", "bad"))
    elif scene.degraded:
        line.append((f"! history: {clean(scene.degraded)}", "bad"))
    else:
        line.append((told, ""))
    keys = "?: keys"
    used = sum(cells(text) for text, _ in line)
    gap = wide - used - len(keys)
    return [*line, (" " * gap + keys, "dim")] if gap > 1 else line


def table(scene: Scene, wide: int, most: int, skip: int = 0) -> list[Line]:
    """At most so many lines; what does not fit, or was skipped, is counted in the last."""
    if most <= 0:
        return []
    fit = columns(wide)
    lines = [head(fit)] if most > 3 else []
    room = most - len(lines)
    rows = list(islice(_rows(scene, fit), skip, skip + room + 1))
    is_whole = not skip and len(rows) <= room
    rows = rows if is_whole else rows[: room - 1]
    lines += [line for line, _ in rows]
    hidden = len(scene.calls) + len(scene.ended) - sum(count for _, count in rows)
    if not is_whole and hidden > 0:
        lines.append([(cut(f"… {hidden} more that do not fit; the arrows move the table", wide), "dim")])
    return lines


def inbox(scene: Scene, wide: int, most: int) -> list[Line]:
    """What waits for a person, each with the key that chooses it."""
    asked = list(scene.asking.values())
    if not asked or most < 2:
        return []
    lines: list[Line] = [
        [("waits for you", "warn"), ("  (its number answers it)" if wide > 45 else "", "dim")]
    ]
    shown = min(MOST_ASKED, most - 1, len(asked))
    shown -= shown < len(asked) and most - 1 == shown
    for number, (node, question) in enumerate(asked[:shown], 1):
        since = passed(scene.now - node.call.asked_at.get(question.id, scene.now))
        who = f"{number} {since} {short(node.call.id)} "
        text = question.message or question.kind
        lines.append([(who, "bold"), (cut(text, wide - len(who)), "")])
    if shown < len(asked):
        lines.append([(f"… {len(asked) - shown} more", "dim")])
    return lines


def _rows(scene: Scene, fit: Columns) -> Iterator[tuple[Line, int]]:
    """Lines with how many calls each stands for; nobody pays for those that nobody takes."""
    for node in (*scene.roots.values(), *reversed(scene.ended)):
        yield from tree(node, scene.now, fit)


def tree(node: Node, now: float, fit: Columns, depth: int = 0) -> Iterator[tuple[Line, int]]:
    """A call and what it called, collapsed where that is much; each line with how many calls it is for."""
    yield row(node, now, fit, depth), int(depth == 0 or node.call.end is None)
    shown = list(islice(below(node), BELOW))
    for one in shown:
        yield from tree(one, now, fit, depth + 1)
    more = node.below - len(shown)
    if more > 0 and node.call.end is None:
        lead = " " * (fit.widths["state"] + 1 + 2 * min(depth, 4))
        failed = f", {node.failed} failed" if node.failed else ""
        yield [(f"{lead}… {more} more{failed}", "dim")], max(0, len(node.living) - len(shown))
