"""How long a call still takes: a range that holds the truth, and nothing where nothing is known."""

import json
from pathlib import Path

import pytest

from afoot.observe.eta import Eta, Point, by_history, by_pace, estimate, quantile, rate, usual_gap

TRACES = json.loads((Path(__file__).parents[1] / "vectors" / "traces.json").read_text())
EVEN = [Point(at, at, 100.0, 1.0) for at in range(1, 11)]


def test_the_range_holds_the_truth_in_four_of_five_readings() -> None:
    """P9: over traces of real work (`bench/traces.py` records them), bad ones among them."""
    held = told = 0
    for trace in TRACES:
        points = [Point(*reading) for reading in trace["readings"]]
        for count, point in enumerate(points, 1):
            eta = estimate(points[:count], point.at)
            if eta is not None:
                told += 1
                held += eta.low_s - 0.1 <= trace["ended"] - point.at <= eta.high_s + 0.1
    assert told > 300
    assert held / told >= 0.8


def test_an_even_pace_gives_a_range_around_the_truth() -> None:
    """P9: ten of a hundred in ten seconds leave ninety, give or take."""
    assert by_pace(EVEN, 10.0) == Eta(56.2, 144.0)


@pytest.mark.parametrize(
    ("points", "elapsed_s"),
    [
        ([], 60.0),
        (EVEN[:2], 60.0),
        (EVEN[:4], 4.9),
        ([Point(at, at) for at in range(1, 11)], 10.0),
        ([Point(at, 0.0, 9.0) for at in range(1, 11)], 10.0),
        ([Point(at, 12.0, 9.0) for at in range(1, 11)], 10.0),
    ],
    ids=["silent", "two readings", "too early", "no total", "nothing done", "past its total"],
)
def test_nothing_is_said_where_nothing_is_known(points: list[Point], elapsed_s: float) -> None:
    """P9: three reports and five seconds, or none."""
    assert estimate(points, elapsed_s) is None


def test_silence_since_the_last_report_makes_it_longer() -> None:
    """P9: a call that has stopped reporting is not nearly there."""
    soon, later = by_pace(EVEN, 10.0), by_pace(EVEN, 60.0)
    assert soon and later and later.high_s > 3 * soon.high_s


def test_earlier_runs_tell_of_a_silent_call() -> None:
    """P9: five of them at least, and only those that took longer than this one has."""
    assert by_history([10.0, 20.0, 30.0, 40.0], 0.0) is None
    assert by_history([10.0, 20.0, 30.0, 40.0, 50.0], 0.0) == Eta(14.0, 46.0)
    assert by_history([10.0, 20.0, 30.0, 40.0, 50.0], 35.0) == Eta(6.0, 14.0)
    assert by_history([10.0, 20.0, 30.0, 40.0, 50.0], 51.0) is None


def test_its_own_pace_counts_for_more_than_earlier_runs() -> None:
    """P9: they may have had other arguments."""
    assert estimate(EVEN, 10.0, [11.0] * 9) == by_pace(EVEN, 10.0)


def test_what_lies_between_two_values_is_between() -> None:
    """P9: quantiles of few values."""
    assert [quantile([1.0, 2.0, 4.0], part) for part in (0.0, 0.25, 0.5, 1.0)] == [1.0, 1.5, 2.0, 4.0]


def test_the_rate_is_that_of_late_and_falls_in_silence() -> None:
    """P9: ten readings are enough to see, and one that is old says less every second."""
    late = [*EVEN, *(Point(10.0 + at, 10.0 + 5 * at, 100.0) for at in range(1, 11))]
    assert rate(late, 20.0) == pytest.approx(5.0)
    assert rate(late, 29.0) == pytest.approx(2.5)
    assert rate(EVEN[:2], 20.0) is None
    assert rate([Point(at, 3.0) for at in range(1, 11)], 20.0) is None


def test_the_usual_gap_is_that_of_most_advances() -> None:
    """C5: what is longer is a stall."""
    assert usual_gap(EVEN) == 1.0
    assert usual_gap(EVEN[:1]) == float("inf")
