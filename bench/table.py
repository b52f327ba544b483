"""`text` shows a run as a table for people, `data` as an object for programs."""

import os
import platform
from collections.abc import Iterable, Sequence

from bench.run import Choice, Row

PEERS = ("mcp", "fastmcp")


def text(rows: Sequence[Row], subjects: Sequence[str]) -> str:
    """Return the table: each subject's figure, afoot's ratio to each peer, and the target if there is one."""
    ratios = [peer for peer in PEERS if peer in subjects and "afoot" in subjects]
    head = ["", "unit", *subjects, *[f"afoot / {peer}" for peer in ratios], "spread", "target"]
    lines: list[list[str]] = []
    group = ""
    for row in rows:
        if group != f"{row.transport} {row.era}":
            group = f"{row.transport} {row.era}"
            lines.append([group])
        arrow = " (less is better)" if row.measure.lower_is_better else ""
        figures = [cell(row, subject) for subject in subjects]
        figures += [ratio(row.ratio(peer)) for peer in ratios]
        lines.append([f"  {row.measure.label}{arrow}", row.measure.unit, *figures, spread(row), target(row)])
    return align([head, *lines])


def data(rows: Iterable[Row], complaints: Sequence[str], choice: Choice, load: float) -> dict[str, object]:
    """Return all figures of all rounds, with the machine they come from."""
    size = choice.size
    return {
        "machine": {
            "load_before": load,
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "system": platform.platform(),
        },
        "size": {
            "seconds": size.seconds,
            "reports": size.reports,
            "waiting": size.waiting,
            "rounds": size.rounds,
        },
        "peers_loop": "uvloop" if choice.setup.uvloop else "their own",
        "rows": [entry(row) for row in rows],
        "complaints": list(complaints),
    }


def entry(row: Row) -> dict[str, object]:
    """Return one row as an object."""
    return {
        "transport": row.transport,
        "era": row.era,
        "measure": row.measure.name,
        "unit": row.measure.unit,
        "lower_is_better": row.measure.lower_is_better,
        "median": {subject: row.value(subject) for subject in row.figures},
        "rounds": {subject: [f.value for f in figures] for subject, figures in row.figures.items()},
        "delivered_share": {s: row.share(s) for s in row.figures if row.share(s) is not None},
        "ratio": {peer: row.ratio(peer) for peer in PEERS if row.ratio(peer) is not None},
        "target": row.measure.target if row.transport == "http" else None,
        "met": row.met(),
        "spread": row.spread(),
    }


def cell(row: Row, subject: str) -> str:
    """Return a subject's figure, with the delivered share if it is not all."""
    value = row.value(subject)
    if value is None:
        return "-"
    share = row.share(subject)
    lost = f" ({share:.0%})" if share is not None and share < 0.999 else ""
    return (f"{value:,.0f}" if value >= 100 else f"{value:.2f}") + lost


def ratio(value: float | None) -> str:
    """Return a ratio with at least two significant digits."""
    if value is None:
        return "-"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


def spread(row: Row) -> str:
    """Return the widest spread of the rounds; empty after a single round."""
    value = row.spread()
    return "-" if value is None else f"{value:.0%}"


def target(row: Row) -> str:
    """Return the target and whether it is met."""
    wanted = row.measure.target
    if wanted is None or row.transport != "http":
        return ""
    sign = f"<= {wanted:g} {row.measure.unit}" if row.measure.lower_is_better else f">= {wanted:g} x mcp"
    return sign + {True: "  met", False: "  MISSED", None: ""}[row.met()]


def align(lines: Sequence[Sequence[str]]) -> str:
    """Return lines of cells as columns: first and last to the left, the others to the right."""
    width = max(len(line) for line in lines)
    full = [[*line, *[""] * (width - len(line))] for line in lines]
    wide = [max(len(line[n]) for line in full) for n in range(width)]
    return "\n".join(joined(line, wide) for line in full)


def joined(line: Sequence[str], wide: Sequence[int]) -> str:
    """Return one line of cells, each as wide as its column."""
    first, *middle, last = line
    cells = [cell.rjust(size) for cell, size in zip(middle, wide[1:-1], strict=True)]
    return "  ".join([first.ljust(wide[0]), *cells, last]).rstrip()
