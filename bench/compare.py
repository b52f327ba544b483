"""`scripts/bench compare --before REV` measures this afoot beside an older one, in short turns.

The same program differs by up to 30 % from one minute to the next on a shared machine, so two runs one after
the other show nothing. Here both servers are up at the same time, on the same core, and take turns of a
fraction of a second; each turn of one is divided by the turn of the other beside it. A process also has a
luck of its own (where its memory lies, its hash seed), so both are started anew several times. A row shows
the median of all ratios, and the range of 95 % of the medians if the starts are drawn again (bootstrap).
"""

import argparse
import asyncio
import contextlib
import dataclasses
import json
import os
import random
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path

import uvloop

from bench.launch import ROOT, Server, Setup, cores, raise_limits
from bench.measure import MEASURES, Client, Measure, Size, memory
from bench.run import Choice, Row, enter, pick
from bench.table import align
from bench.wire import ERAS, BenchError

TRANSPORTS = ("http", "stdio")
SIDES = ("before", "afoot")
DRAWS = 2_000
TURN = Size(seconds=0.3, reports=5_000, waiting=1_000, rounds=1, most=100_000)
"""The work of one turn: short, so that both sides of a pair meet the same machine."""


@dataclass(slots=True)
class Pairs:
    """All turns of one measure: `values` and `processor` hold, for each start, pairs of (before, after)."""

    transport: str
    era: str
    measure: Measure
    values: list[list[tuple[float, float]]] = field(default_factory=list)
    processor: list[list[tuple[float, float]]] = field(default_factory=list)
    """Microseconds of the server's processor for a call or a notification."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """After divided by before: the median, and the bounds of 95 % of the medians."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, starts: Sequence[Sequence[tuple[float, float]]]) -> "Ratio":
        """Return the ratio of all pairs; whole starts are drawn for the bounds."""
        groups = [[after / before for before, after in pairs] for pairs in starts if pairs]
        draw = random.Random(1)
        medians = sorted(
            statistics.median([r for group in draw.choices(groups, k=len(groups)) for r in group])
            for _ in range(DRAWS)
        )
        whole = statistics.median([r for group in groups for r in group])
        return cls(whole, medians[DRAWS // 40], medians[-DRAWS // 40])

    def __str__(self) -> str:
        """Return the median with its bounds."""
        return f"{self.median:.3f} ({self.low:.2f}-{self.high:.2f})"


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare with an older revision; exits with 1 if something could not be measured."""
    options = parser().parse_args(arguments)
    words = [word for word in (options.only or "").split(",") if word]
    known = (*TRANSPORTS, *ERAS, *[m.name for m in MEASURES])
    unknown = [word for word in words if word not in known]
    if unknown:
        print(
            f"bench: --only does not know {', '.join(unknown)}; it knows {', '.join(known)}", file=sys.stderr
        )
        return 2
    raise_limits()
    server_core, client_core = cores()
    os.sched_setaffinity(0, client_core)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        try:
            before = unpacked(options.before, Path(folder))
        except BenchError as error:
            print(f"bench: {error}", file=sys.stderr)
            return 1
        choice = Choice(
            transports=pick(words, TRANSPORTS),
            eras=pick(words, ERAS),
            subjects=SIDES,
            measures=tuple(m for m in MEASURES if m.name in pick(words, [m.name for m in MEASURES])),
            size=dataclasses.replace(TURN, rounds=options.turns),
            setup=Setup(sys.executable, Path(folder), before=before),
            core=server_core,
        )
        rows = uvloop.run(compare(choice, options.starts))
    print(json.dumps([data(row) for row in rows], indent=1) if options.json else text(rows))
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    found = argparse.ArgumentParser(prog="python -m bench.compare", description=__doc__)
    found.add_argument("--before", required=True, metavar="REV", help="the git revision to compare with")
    found.add_argument("--starts", type=int, default=6, help="how often both are started anew")
    found.add_argument("--turns", type=int, default=10, help="turns of each measure after each start")
    found.add_argument("--only", metavar="WORDS", help="transports, eras, measures; separated by commas")
    found.add_argument("--json", action="store_true", help="print all turns as one object")
    return found


def unpacked(revision: str, folder: Path) -> Path:
    """Write the files of a revision into the folder; raises BenchError if git does not know it."""
    made = subprocess.run(
        ["git", "archive", revision, "src", "bench"], cwd=ROOT, capture_output=True, check=False
    )
    if made.returncode:
        raise BenchError(f"git has no such revision: {made.stderr.decode(errors='replace').strip()}")
    target = folder / "before"
    with tarfile.open(fileobj=BytesIO(made.stdout)) as files:
        files.extractall(target, filter="data")
    return target


async def compare(choice: Choice, starts: int) -> list[Pairs]:
    """Measure everything that was chosen; starts are the outer loop, so that slow changes meet every row."""
    rows = {
        (transport, era, measure.name): Pairs(transport, era, measure)
        for transport in choice.transports
        for era in choice.eras
        for measure in choice.measures
    }
    for start in range(starts):
        print(f"bench: start {start + 1} of {starts}", file=sys.stderr, flush=True)
        for transport in choice.transports:
            for era in choice.eras:
                mine = [row for row in rows.values() if (row.transport, row.era) == (transport, era)]
                for row in mine:
                    row.values.append([])
                    row.processor.append([])
                await one_start(choice, mine, start)
    return list(rows.values())


async def one_start(choice: Choice, rows: Sequence[Pairs], start: int) -> None:
    """Start both sides once, and take all turns."""
    turned = [row for row in rows if row.measure.run is not None]
    async with contextlib.AsyncExitStack() as stack:
        sides = {side: await opened(stack, choice, side, rows[0]) for side in order(start)} if turned else {}
        for turn in range(choice.size.rounds):
            for row in turned:
                await one_pair(sides, row, choice.size, order(turn))
    for row in rows:
        if row.measure.run is None:
            row.values[-1].append(await waiting_memory(choice, row, start))


async def waiting_memory(choice: Choice, row: Pairs, start: int) -> tuple[float, float]:
    """Measure the memory of both sides, each on a fresh server."""
    found: dict[str, float] = {}
    for side in order(start):
        async with contextlib.AsyncExitStack() as stack:
            client, server = await opened(stack, choice, side, row)
            found[side] = (await memory(client, choice.size, server)).value
    return found["before"], found["afoot"]


def order(number: int) -> tuple[str, ...]:
    """Return which side goes first: each as often as the other."""
    return SIDES if number % 2 else tuple(reversed(SIDES))


async def opened(
    stack: contextlib.AsyncExitStack, choice: Choice, side: str, row: Pairs
) -> tuple[Client, Server]:
    """Start one side, open a client to it and warm it."""
    return await enter(stack, choice, side, Row(row.transport, row.era, row.measure))


async def one_pair(
    sides: dict[str, tuple[Client, Server]], row: Pairs, size: Size, turns: Sequence[str]
) -> None:
    """Take one turn of each side, one right after the other."""
    measure = row.measure.run
    assert measure is not None
    values: dict[str, float] = {}
    processor: dict[str, float] = {}
    for side in turns:
        client, server = sides[side]
        await asyncio.sleep(0.05)  # what the last turn left to do is not this one's
        spent = server.processor_s()
        figure = await measure(client, size)
        values[side] = figure.value
        if figure.amount:
            processor[side] = (server.processor_s() - spent) / figure.amount * 1e6
    row.values[-1].append((values["before"], values["afoot"]))
    if processor:
        row.processor[-1].append((processor["before"], processor["afoot"]))


def text(rows: Sequence[Pairs]) -> str:
    """Return the table: both medians, the ratio, and the ratio of processor time."""
    lines = [["", "unit", "before", "after", "after / before", "processor, after / before", ""]]
    group = ""
    for row in rows:
        if group != f"{row.transport} {row.era}":
            group = f"{row.transport} {row.era}"
            lines.append([group])
        better = "less is better" if row.measure.lower_is_better else "more is better"
        lines.append(
            [
                f"  {row.measure.label}",
                row.measure.unit,
                *[f"{median(row, n):,.4g}" for n in (0, 1)],
                str(Ratio.of(row.values)),
                str(Ratio.of(row.processor)) if any(row.processor) else "",
                better,
            ]
        )
    return align(lines)


def median(row: Pairs, side: int) -> float:
    """Return the median of all turns of one side."""
    return statistics.median(pair[side] for pairs in row.values for pair in pairs)


def data(row: Pairs) -> dict[str, object]:
    """Return one row as an object, with all its turns."""
    return {
        "transport": row.transport,
        "era": row.era,
        "measure": row.measure.name,
        "unit": row.measure.unit,
        "lower_is_better": row.measure.lower_is_better,
        "ratio": dataclasses.asdict(Ratio.of(row.values)),
        "processor": dataclasses.asdict(Ratio.of(row.processor)) if any(row.processor) else None,
        "turns": row.values,
        "processor_turns": row.processor,
    }


if __name__ == "__main__":
    sys.exit(main())
