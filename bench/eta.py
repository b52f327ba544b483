"""`python -m bench.eta` measures how wrong the time left is: by afoot, by the naive rule, and by tqdm's.

Twelve curves of progress run through a gateway on a fake clock, so that the whole way of a report counts:
what is kept of it, and what is told. Nothing here depends on the machine; the figures are always the same.

The error is the distance to the true time left, in per cent of it, at 37 instants from 5 to 95 % of the run.
"""

import argparse
import asyncio
import json
import random
import statistics
import sys
from bisect import bisect_right
from collections.abc import Callable, Sequence

from msgspec import convert

from afoot.config.settings import Settings
from afoot.engine.engine import Submission
from afoot.gateway import MEMORY, Gateway
from afoot.observe.eta import quantile
from afoot.providers.functions.context import Context
from afoot.providers.functions.tool import tool
from afoot.serve.api.views import call_eta
from afoot.testing import run

Readings = list[tuple[float, float]]
"""The instants of a run, and what was done by then; the last one is the total."""

INSTANTS = tuple(part / 40 for part in range(2, 39))
RULES = ("afoot", "naive", "tqdm")
_SETTINGS = {
    "store": MEMORY,
    "isolation": {"enabled": False},
    "idle_s": 3600,
    "ceiling_s": 3600,
}
_TQDM_SMOOTHING = 0.3
_TQDM_INTERVAL_S = 0.1


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, or one object with `--json`."""
    parser = argparse.ArgumentParser(prog="python -m bench.eta", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one object instead of the table")
    options = parser.parse_args(arguments)
    found = {name: errors_of_rules(readings) for name, readings in curves().items()}
    figures = {name: {rule: summary(found[name][rule]) for rule in RULES} for name in found}
    medians, tails = (
        {rule: statistics.mean(one[rule][part] for one in figures.values()) for rule in RULES}
        for part in (0, 1)
    )
    figures["mean of all"] = {rule: (medians[rule], tails[rule]) for rule in RULES}
    print(json.dumps(figures, indent=1) if options.json else table(figures))
    return 0


def table(figures: dict[str, dict[str, tuple[float, float]]]) -> str:
    """The figures as a table for people."""
    head = f"{'error of the time left, %':<26}" + "".join(f"{rule:>16}" for rule in RULES)
    rows = [head, f"{'':<26}" + f"{'median':>9}{'p90':>7}" * len(RULES)]
    for name, by_rule in figures.items():
        rows.append(
            f"{name:<26}" + "".join(f"{by_rule[rule][0]:9.0f}{by_rule[rule][1]:7.0f}" for rule in RULES)
        )
    return "\n".join(rows)


def curves() -> dict[str, Readings]:
    """Twelve runs of about a minute, by name."""
    dice = random.Random(1)
    durations: dict[str, list[float]] = {
        "steady": [0.5] * 120,
        "accelerating": [0.8 - 0.6 * number / 119 for number in range(120)],
        "slowing": [0.2 + 0.6 * number / 119 for number in range(120)],
        "stalling": [*[0.3] * 48, 20.0, *[0.3] * 71],
        "stepwise": [7.5] * 8,
        "noisy": [dice.expovariate(2.0) for _ in range(120)],
        "outliers": [6.0 if dice.random() < 0.05 else 0.2 for _ in range(120)],
        "slow start": [20.3, *[0.3] * 119],
        "slow end": [*[0.25] * 108, *[2.5] * 12],
        "two phases": [*[0.25] * 60, *[0.75] * 60],
        "waves": [0.2 if number // 15 % 2 else 0.8 for number in range(120)],
        "bursts": [6.0 if number % 12 == 0 else 0.005 for number in range(120)],
    }
    return {name: readings_of(steps) for name, steps in durations.items()}


def readings_of(steps: Sequence[float]) -> Readings:
    """A reading after each step, which take these times."""
    at, found = 0.0, Readings()
    for number, step_s in enumerate(steps, 1):
        at += step_s
        found.append((at, float(number)))
    return found


def errors_of_rules(readings: Readings) -> dict[str, list[float]]:
    """The errors of each rule at all instants at which every rule says something."""
    ended, total = readings[-1]
    instants = [ended * part for part in INSTANTS]
    told: dict[str, list[float | None]] = {
        "afoot": run(told_by_afoot(readings, instants)),
        "naive": [told_by(naive, readings, now, total) for now in instants],
        "tqdm": [told_by(tqdm, readings, now, total) for now in instants],
    }
    found: dict[str, list[float]] = {rule: [] for rule in RULES}
    for number, now in enumerate(instants):
        values = {rule: told[rule][number] for rule in RULES}
        if None not in values.values():
            for rule, left_s in values.items():
                assert left_s is not None
                found[rule].append(100 * abs(left_s - (ended - now)) / (ended - now))
    return found


def summary(errors: Sequence[float]) -> tuple[float, float]:
    """The median and the 90th percentile."""
    ordered = sorted(errors)
    return statistics.median(ordered), quantile(ordered, 0.9)


async def told_by_afoot(readings: Readings, instants: Sequence[float]) -> list[float | None]:
    """The time left that a gateway tells at these instants of a run."""

    @tool
    async def work(ctx: Context) -> str:
        """Reports as the curve says."""
        total, now = readings[-1][1], 0.0
        for at, done in readings:
            await asyncio.sleep(at - now)
            now = at
            ctx.report(done, total)
        return "done"

    found: list[float | None] = []
    async with Gateway(work, settings=convert(_SETTINGS, Settings)) as gateway:
        engine = gateway.engine
        live = engine.submit(Submission("work"))
        now = 0.0
        for at in instants:
            await asyncio.sleep(at - now)
            now = at
            eta = call_eta(engine, live, engine.clock.now())
            found.append(None if eta is None else eta.left_s)
    return found


def told_by(
    rule: Callable[[Readings, float, float], float | None], readings: Readings, now: float, total: float
) -> float | None:
    """The time left by a rule that sees the readings up to now."""
    seen = readings[: bisect_right(readings, (now, total))]
    return rule(seen, now, total) if seen else None


def naive(readings: Readings, now: float, total: float) -> float | None:
    """As long a unit as until now."""
    done = readings[-1][1]
    return (total - done) * now / done if done else None


def tqdm(readings: Readings, now: float, total: float) -> float | None:
    """The exponential moving averages of tqdm 4, with its default smoothing and least interval."""
    last_at = last_done = done_average = took_average = 0.0
    for at, done in readings:
        if at - last_at >= _TQDM_INTERVAL_S:
            done_average += _TQDM_SMOOTHING * (done - last_done - done_average)
            took_average += _TQDM_SMOOTHING * (at - last_at - took_average)
            last_at, last_done = at, done
    done = readings[-1][1]
    rate = done_average / took_average if took_average else done / now
    return (total - done) / rate if rate else None


if __name__ == "__main__":
    sys.exit(main())
