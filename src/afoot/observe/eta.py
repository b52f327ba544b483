"""`estimate` says how long a call still takes: by its own pace, or by earlier runs of its tool (P9, P13).

Pure: readings and durations in, one value out; None where nothing is known. `bench/eta.py` compares the rule
with others.
"""

from collections.abc import Sequence
from math import sqrt

from msgspec import Struct

MIN_READINGS = 3  # of a call, before its rate is told
MIN_ADVANCES = 5  # of a call, before its longest gap may be unusual
MIN_RUNS = 5  # of a tool, before its earlier runs count
RECENT = 0.1  # the recent pace halves the weight of what is older than this part of the time
FEW_POINTS = 4  # up to here, the newest reading counts even if it came right behind another one
MIN_GAP_S = 1.0  # later it does not: a burst would look like the pace
SILENCE = 0.5  # how much of an unusually long silence counts as a slower pace
WIDE = 2.0  # the high end of a range is at least this many times the low end, else one value says enough
RECENT_READINGS = 10  # over which the rate of a call is told
LOW, MIDDLE, HIGH = 0.1, 0.5, 0.9  # quantiles of the earlier runs that lasted longer than this one has so far
_UNITS = (("h", 3600), ("min", 60), ("s", 1))


class ProgressPoint(Struct, frozen=True):
    """The progress of a call: seconds on its clock, done, total, seconds since the last advance."""

    at: float
    done: float
    total: float | None = None
    gap_s: float = 0.0


class Eta(Struct, frozen=True, omit_defaults=True):
    """The seconds that a call still takes; with a range if its pace, or its earlier runs, differ widely."""

    left_s: float
    low_s: float | None = None
    high_s: float | None = None


def estimate(points: Sequence[ProgressPoint], elapsed_s: float, before: Sequence[float] = ()) -> Eta | None:
    """The time left of a call that has run for `elapsed_s`; `before`: how long earlier runs took, sorted.

    Earlier runs count only where there is no total: they may have had other arguments.
    """
    if points and points[-1].total is not None:
        return estimate_from_pace(points, elapsed_s)
    return estimate_from_history(before, elapsed_s)


def estimate_from_pace(points: Sequence[ProgressPoint], elapsed_s: float) -> Eta | None:
    """The time left by the reports of the call: by its pace as a whole and by its recent pace, both alike.

    The time before the first report is no part of the pace: many tools load something first. Between two
    reports, the value falls as time passes; after the usual gap it rises again.
    """
    last = points[-1]
    advances = _advances(points)
    if len(advances) < 2 or last.total is None or not 0 < last.done < last.total:
        return None
    if len(advances) > FEW_POINTS and advances[-1].at - advances[-2].at < MIN_GAP_S:
        advances.pop()
    took_s = advances[-1].at - advances[0].at
    whole_s = took_s / (advances[-1].done - advances[0].done)  # for one unit of progress
    recent_s = _recent_pace(advances, RECENT * took_s)
    left = last.total - last.done
    gap_s = quantile(sorted(new.at - old.at for old, new in zip(advances, advances[1:], strict=False)), HIGH)
    silent_s = max(0.0, elapsed_s - last.at)
    slower = 1.0 + SILENCE * max(0.0, silent_s - gap_s) / took_s if took_s else 1.0
    due_s = min(silent_s, gap_s)  # of the next step, so much is over
    middle, *ends = (
        max(0.0, left * pace_s * slower - due_s)
        for pace_s in (sqrt(whole_s * recent_s), min(whole_s, recent_s), max(whole_s, recent_s))
    )
    return _eta(middle, *ends)


def estimate_from_history(before: Sequence[float], elapsed_s: float) -> Eta | None:
    """The time left by the earlier runs that took longer than this one has so far."""
    longer = [one - elapsed_s for one in before if one > elapsed_s]
    if len(before) < MIN_RUNS or not longer:
        return None
    return _eta(quantile(longer, MIDDLE), quantile(longer, LOW), quantile(longer, HIGH))


def quantile(values: Sequence[float], part: float) -> float:
    """The value below which this part of the sorted values lies; it may lie between two of them."""
    position = (len(values) - 1) * part
    below = int(position)
    above = min(below + 1, len(values) - 1)
    return values[below] + (values[above] - values[below]) * (position - below)


def recent_rate(points: Sequence[ProgressPoint], elapsed_s: float) -> float | None:
    """The recent progress a second; the silence since the last reading counts, too."""
    if len(points) < MIN_READINGS:
        return None
    first, last = points[-RECENT_READINGS:][0], points[-1]
    took_s = elapsed_s - first.at
    return round((last.done - first.done) / took_s, 6) if took_s > 0 and last.done > first.done else None


def usual_gap(points: Sequence[ProgressPoint]) -> float | None:
    """The longest time that a call usually takes between two advances; None without any (C5)."""
    gaps = sorted(point.gap_s for point in points[1:])
    if len(points) < MIN_ADVANCES:
        return gaps[-1] if gaps else None
    return quantile(gaps, HIGH)


def _advances(points: Sequence[ProgressPoint]) -> list[ProgressPoint]:
    """The points at which the call had advanced, with the first one."""
    found = list(points[:1])
    for point in points:
        if point.done > found[-1].done and point.at > found[-1].at:
            found.append(point)
    return found


def _recent_pace(points: Sequence[ProgressPoint], half_life_s: float) -> float:
    """The seconds for one unit of progress, of late: the older an advance, the less it counts."""
    end = points[-1].at
    took_s = done = 0.0
    for old, new in zip(points, points[1:], strict=False):
        weight = 0.5 ** ((end - (old.at + new.at) / 2) / half_life_s)
        took_s += weight * (new.at - old.at)
        done += weight * (new.done - old.done)
    return took_s / done


def _eta(left_s: float, low_s: float, high_s: float) -> Eta:
    is_wide = high_s >= WIDE * max(1.0, low_s)
    return Eta(round(left_s, 1), round(low_s, 1), round(high_s, 1)) if is_wide else Eta(round(left_s, 1))


def describe_eta(eta: Eta | None, age_s: float = 0.0) -> str:
    """The time left in words: ~16 s left, 2-4 min left; empty if it is unknown.

    `age_s`: how long ago the estimate was made. A call that should be over by now is unknown again.
    """
    if eta is None:
        return ""
    age_s = age_s if age_s > 1.0 else 0.0
    low_s, high_s = (eta.left_s if end is None else end for end in (eta.low_s, eta.high_s))
    if age_s and high_s <= age_s:
        return ""
    name, unit_s = next((name, size) for name, size in _UNITS if high_s - age_s >= 2 * size or size == 1)
    low, high = (max(0, round((end - age_s) / unit_s)) for end in (low_s, high_s))
    if low >= high:
        return f"~{max(1, high)} {name} left"
    return f"{low}-{high} {name} left" if low else f"up to {high} {name} left"
