"""How long a call still takes: one value near the truth, and nothing where nothing is known."""

import json
from pathlib import Path
from statistics import mean

import pytest

from afoot.observe.eta import (
    Eta,
    ProgressPoint,
    estimate,
    estimate_from_history,
    estimate_from_pace,
    quantile,
    recent_rate,
    usual_gap,
)
from bench.eta import RULES, curves, errors_of_rules, naive, summary, tqdm

TRACES = json.loads((Path(__file__).parents[1] / "vectors" / "traces.json").read_text())
EVEN = [ProgressPoint(at, at, 100.0, 1.0) for at in range(1, 11)]


def test_the_time_left_is_nearer_to_the_truth_than_by_simpler_rules() -> None:
    """P9, P13: over twelve curves, on a gateway; half of the time, and in the worst tenth of the cases."""
    errors = [errors_of_rules(readings) for readings in curves().values()]
    medians, tails = (
        {rule: mean(summary(one[rule])[part] for one in errors) for rule in RULES} for part in (0, 1)
    )
    assert len(errors) == 12 and all(len(one["afoot"]) > 20 for one in errors)
    assert medians["afoot"] < min(medians["naive"], medians["tqdm"])
    assert tails["afoot"] < 0.7 * min(tails["naive"], tails["tqdm"])


def test_it_is_nearer_to_the_truth_for_real_work_too() -> None:
    """P9, P13: over traces of real work (`bench/traces.py` records them); the rule was not made for these."""
    found: dict[str, list[float]] = {"afoot": [], "naive": [], "tqdm": []}
    for trace in TRACES:
        points = [ProgressPoint(*reading) for reading in trace["readings"]]
        errors: dict[str, list[float]] = {rule: [] for rule in found}
        for count, point in enumerate(points[:-1], 1):
            readings = [(one.at, one.done) for one in points[:count]]
            eta, left_s = estimate_from_pace(points[:count], point.at), trace["ended"] - point.at
            rules = (naive, tqdm) if eta is not None and point.at > 0 else ()
            told = [rule(readings, point.at, point.total or 0.0) for rule in rules]
            if eta is not None and told and None not in told:
                for rule, value in zip(found, (eta.left_s, *told), strict=True):
                    errors[rule].append(abs((value or 0.0) - left_s) / left_s)
        for rule, one in errors.items():
            found[rule].append(quantile(sorted(one), 0.9))
    assert mean(found["afoot"]) < 0.9 * min(mean(found["naive"]), mean(found["tqdm"]))


def test_two_readings_are_enough_for_one_value() -> None:
    """P13: four of eight after three quarters of a second leave three quarters of a second."""
    two = [ProgressPoint(0.1875, 1.0, 8.0), ProgressPoint(0.75, 4.0, 8.0)]
    assert estimate(two, 0.75, [180.0] * 9) == Eta(0.8)
    assert estimate(two[:1], 0.75, [180.0] * 9) is None


def test_an_even_pace_gives_the_truth() -> None:
    """P9, P13: ten of a hundred in ten seconds leave ninety, and no range."""
    assert estimate_from_pace(EVEN, 10.0) == Eta(90.0)


def test_a_pace_that_has_changed_much_gives_a_range() -> None:
    """P13: it is wide for a reason, and the value lies in it."""
    fast = [ProgressPoint(at, at, 100.0) for at in range(1, 51)]
    slow = [ProgressPoint(50.0 + 20 * at, 50.0 + at, 100.0) for at in range(1, 11)]
    eta = estimate_from_pace([*fast, *slow], 250.0)
    assert eta is not None and eta.low_s is not None and eta.high_s is not None
    assert 160 < eta.low_s < eta.left_s < eta.high_s <= 800


def test_the_time_before_the_first_report_is_no_part_of_the_pace() -> None:
    """P13: a tool that loads a model for a minute works at its own pace then."""
    assert estimate_from_pace([ProgressPoint(60.0 + at, at, 10.0) for at in range(1, 4)], 63.0) == Eta(7.0)


def test_the_value_falls_while_a_long_step_lasts() -> None:
    """P13: eight steps of ten seconds; nothing is wrong in the middle of one."""
    steps = [ProgressPoint(10.0 * step, step, 8.0) for step in range(1, 4)]
    assert [estimate_from_pace(steps, now) for now in (30.0, 34.0, 39.0)] == [Eta(50.0), Eta(46.0), Eta(41.0)]


@pytest.mark.parametrize(
    ("points", "elapsed_s"),
    [
        ([], 60.0),
        (EVEN[:1], 60.0),
        ([ProgressPoint(at, at) for at in range(1, 11)], 10.0),
        ([ProgressPoint(at, 0.0, 9.0) for at in range(1, 11)], 10.0),
        ([ProgressPoint(at, 12.0, 9.0) for at in range(1, 11)], 10.0),
        ([ProgressPoint(at, at, 9.0) for at in range(1, 10)], 10.0),
    ],
    ids=["silent", "one reading", "no total", "nothing done", "past its total", "at its total"],
)
def test_nothing_is_said_where_nothing_is_known(points: list[ProgressPoint], elapsed_s: float) -> None:
    """P9, P13: no pace, or nothing left by it."""
    assert estimate(points, elapsed_s) is None


def test_silence_since_the_last_report_makes_it_longer() -> None:
    """P9: a call that has stopped reporting is not nearly there."""
    soon, later = estimate_from_pace(EVEN, 10.0), estimate_from_pace(EVEN, 60.0)
    assert soon and later and later.left_s > 3 * soon.left_s


def test_earlier_runs_tell_of_a_silent_call() -> None:
    """P9: five of them at least, and only those that took longer than this one has."""
    assert estimate_from_history([10.0, 20.0, 30.0, 40.0], 0.0) is None
    assert estimate_from_history([10.0, 20.0, 30.0, 40.0, 50.0], 0.0) == Eta(30.0, 14.0, 46.0)
    assert estimate_from_history([10.0, 20.0, 30.0, 40.0, 50.0], 30.0) == Eta(15.0)
    assert estimate_from_history([10.0, 20.0, 30.0, 40.0, 50.0], 51.0) is None


def test_earlier_runs_count_only_without_a_total() -> None:
    """P9, P13: they may have had other arguments."""
    assert estimate(EVEN, 10.0, [11.0] * 9) == Eta(90.0)
    assert estimate([ProgressPoint(at, at) for at in range(1, 11)], 10.0, [11.0] * 9) == Eta(1.0)


def test_what_lies_between_two_values_is_between() -> None:
    """P9: quantiles of few values."""
    assert [quantile([1.0, 2.0, 4.0], part) for part in (0.0, 0.25, 0.5, 1.0)] == [1.0, 1.5, 2.0, 4.0]


def test_the_rate_is_that_of_late_and_falls_in_silence() -> None:
    """P9: ten readings are enough to see, and one that is old says less every second."""
    late = [*EVEN, *(ProgressPoint(10.0 + at, 10.0 + 5 * at, 100.0) for at in range(1, 11))]
    assert recent_rate(late, 20.0) == pytest.approx(5.0)
    assert recent_rate(late, 29.0) == pytest.approx(2.5)
    assert recent_rate(EVEN[:2], 20.0) is None
    assert recent_rate([ProgressPoint(at, 3.0) for at in range(1, 11)], 20.0) is None


def test_the_usual_gap_is_that_of_most_advances() -> None:
    """C5: what is longer is a stall."""
    assert usual_gap(EVEN) == 1.0
    assert usual_gap([*EVEN[:2], ProgressPoint(22.0, 3.0, 100.0, 20.0)]) == 20.0
    assert usual_gap(EVEN[:1]) is None
