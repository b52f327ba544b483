"""The end of a soak for people and for programs: a table, a plot of the memory, and JSON."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final
from xml.sax.saxutils import escape

from tests.soak.driver import Soak
from tests.soak.figures import SLACK, Figures, plateau

WIDTH, HEIGHT, MARGIN = 900, 260, 40
ROWS, COLUMNS = 8, 72
COLOURS: Final = ("#2563eb", "#d97706", "#059669", "#dc2626", "#7c3aed")


def as_json(soak: Soak, seed: int, problems: Sequence[str]) -> dict[str, Any]:
    """All figures of a soak."""
    return {
        "seed": seed,
        "ok": not problems,
        "problems": list(problems),
        "phases": [asdict(phase) for phase in soak.phases],
        "outcomes": soak.judge.ends,
        "facts": soak.judge.facts,
        "watched": [
            {"facts": one.facts, "resumed": one.resumed, "resets": one.resets} for one in soak.watchers
        ],
        "samples": [asdict(one) for one in soak.sampler.samples],
        "pauses": [asdict(one) for one in soak.sampler.pauses],
    }


def table(soak: Soak) -> str:
    """The summary: what was done, how calls ended, and what the gateways held in idle pauses."""
    phases = soak.phases
    actions: dict[str, int] = {}
    for phase in phases:
        for name, count in phase.counts.items():
            actions[name] = actions.get(name, 0) + count
    lines = [
        f"{len(phases)} phases, {sum(phase.requests for phase in phases)} requests, "
        f"{sum(phase.acknowledged for phase in phases)} calls acknowledged, "
        f"{soak.judge.facts} facts replayed",
        "outcomes: " + ", ".join(f"{name} {count}" for name, count in sorted(soak.judge.ends.items())),
        "done: " + ", ".join(f"{name} {count}" for name, count in sorted(actions.items())),
        *(
            f"watcher: {one.facts} facts, resumed {one.resumed} times, {one.resets} resets"
            for one in soak.watchers
        ),
    ]
    for life in sorted({one.life for one in soak.sampler.pauses}):
        pauses = [one for one in soak.sampler.pauses if one.life == life]
        lines.append(
            f"gateway {life}, {len(pauses)} idle pauses" + ("" if len(pauses) > 1 else ": " + _one(pauses[0]))
        )
        if len(pauses) > 1:
            for name in SLACK:
                values = [float(asdict(one)[name]) for one in pauses]
                early, late = plateau(values)
                lines.append(
                    f"  {name:9} first half {early:9.1f}  second half {late:9.1f}  most {max(values):9.1f}"
                )
    return "\n".join(lines)


def text_plot(samples: Sequence[Figures]) -> str:
    """The memory over time, for a terminal."""
    if not samples:
        return "no samples"
    most, end_s = max(one.rss_mb for one in samples), max(one.at_s for one in samples) or 1.0
    grid = [[" "] * COLUMNS for _ in range(ROWS)]
    for one in samples:
        column = min(COLUMNS - 1, int(one.at_s / end_s * COLUMNS))
        row = min(ROWS - 1, int(one.rss_mb / most * ROWS * 0.999))
        grid[ROWS - 1 - row][column] = str(one.life % 10)
    lines = [f"{most * (ROWS - n) / ROWS:7.0f} MB |{''.join(row)}" for n, row in enumerate(grid)]
    return "\n".join([*lines, f"{'':10} +{'-' * COLUMNS} {end_s:.0f} s"])


def svg_plot(samples: Sequence[Figures], title: str) -> str:
    """The memory over time as a picture; a line for each gateway."""
    most = max((one.rss_mb for one in samples), default=1.0) * 1.1
    end_s = max((one.at_s for one in samples), default=1.0) or 1.0
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="12"><rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{MARGIN}" y="18">{escape(title)}</text>',
    ]
    for share in (0.0, 0.5, 1.0):
        y = HEIGHT - MARGIN - share * (HEIGHT - 2 * MARGIN)
        parts.append(
            f'<line x1="{MARGIN}" x2="{WIDTH - MARGIN}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
            f'<text x="2" y="{y:.1f}">{most * share:.0f} MB</text>'
        )
    for life in sorted({one.life for one in samples}):
        points = " ".join(
            f"{MARGIN + one.at_s / end_s * (WIDTH - 2 * MARGIN):.1f},"
            f"{HEIGHT - MARGIN - one.rss_mb / most * (HEIGHT - 2 * MARGIN):.1f}"
            for one in samples
            if one.life == life
        )
        colour = COLOURS[life % len(COLOURS)]
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}"/>')
    parts.append(f'<text x="{WIDTH - MARGIN - 40}" y="{HEIGHT - 20}">{end_s:.0f} s</text></svg>')
    return "\n".join(parts) + "\n"


def _one(held: Figures) -> str:
    return f"{held.rss_mb:.1f} MB, {held.fds} fds, {held.threads} threads, {held.tasks} tasks"
