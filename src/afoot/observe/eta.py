"""How long a call still takes, as a range: from its own pace, or from what its tool took before (P9).

Pure: readings and durations in, a range out; nothing where nothing is known.
"""

from collections.abc import Sequence
from math import inf

from msgspec import Struct

LEAST_READINGS = 3  # of the call itself
LEAST_S = 5.0
LEAST_RUNS = 5  # of the tool before
WINDOWS = (1.0, 0.5, 0.25, 0.1)  # parts of the way, from its newest end, whose paces are compared
SLACK = 1.6  # paces change, more than one thinks: by so much the range is wider than those seen
RECENT = 10  # readings over which it is said how fast a call goes
LOW, HIGH = 0.1, 0.9  # of earlier runs that lasted longer than this one has so far


class Point(Struct, frozen=True):
    """How far a call was: seconds on its clock, what was done of what; seconds since the last advance."""

    at: float
    done: float
    total: float | None = None
    gap_s: float = 0.0


class Eta(Struct, frozen=True):
    """The seconds that a call still takes: at least, and at most."""

    low_s: float
    high_s: float


def estimate(points: Sequence[Point], elapsed_s: float, before: Sequence[float] = ()) -> Eta | None:
    """The time left of a call that has run so long; `before`: how long earlier runs took, sorted.

    Its own pace counts for more than earlier runs, which may have had other arguments.
    """
    return by_pace(points, elapsed_s) or by_history(before, elapsed_s)


def by_pace(points: Sequence[Point], elapsed_s: float) -> Eta | None:
    """From what the call itself reported: its slowest and its fastest pace so far, and some slack."""
    if len(points) < LEAST_READINGS or elapsed_s < LEAST_S:
        return None
    last = points[-1]
    if last.total is None or not 0 < last.done <= last.total:
        return None
    paces = [pace for part in WINDOWS if (pace := _pace(points, elapsed_s, part)) is not None]
    if not paces:
        return None
    left = last.total - last.done
    return Eta(round(left / max(paces) / SLACK, 1), round(left / min(paces) * SLACK, 1))


def by_history(before: Sequence[float], elapsed_s: float) -> Eta | None:
    """From earlier runs that took longer than this one has so far."""
    longer = [one - elapsed_s for one in before if one > elapsed_s]
    if len(before) < LEAST_RUNS or not longer:
        return None
    return Eta(round(quantile(longer, LOW), 1), round(quantile(longer, HIGH), 1))


def quantile(values: Sequence[float], part: float) -> float:
    """The value below which this part of sorted values lies, between two where it must."""
    place = (len(values) - 1) * part
    below = int(place)
    above = min(below + 1, len(values) - 1)
    return values[below] + (values[above] - values[below]) * (place - below)


def rate(points: Sequence[Point], elapsed_s: float) -> float | None:
    """What was done a second of late; the silence since then counts, too."""
    if len(points) < LEAST_READINGS:
        return None
    first, last = points[-RECENT:][0], points[-1]
    took_s = elapsed_s - first.at
    return round((last.done - first.done) / took_s, 6) if took_s > 0 and last.done > first.done else None


def usual_gap(points: Sequence[Point]) -> float:
    """The longest that a call usually takes between two advances; without any, for ever."""
    gaps = sorted(point.gap_s for point in points[1:])  # between the points of a long call lie others
    return quantile(gaps, HIGH) if gaps else inf


def _pace(points: Sequence[Point], elapsed_s: float, part: float) -> float | None:
    """What was done a second over this part of the way. Silence since the last reading counts, too."""
    last = points[-1]
    first = next((point for point in points if point.done >= last.done * (1 - part)), last)
    if part == 1.0:
        first = Point(0.0, 0.0)
    done, took_s = last.done - first.done, elapsed_s - first.at
    return done / took_s if done > 0 and took_s > 0 else None
