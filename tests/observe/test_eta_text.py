"""Words for a terminal: how long a call still takes."""

import pytest

from afoot.observe.eta import Eta, describe_eta


@pytest.mark.parametrize(
    ("eta", "words"),
    [
        (Eta(16.2), "~16 s left"),
        (Eta(0.2), "~1 s left"),
        (Eta(119.0), "~119 s left"),
        (Eta(130.0), "~2 min left"),
        (Eta(9000.0), "~2 h left"),
        (Eta(180.0, 120.0, 240.0), "2-4 min left"),
        (Eta(30.0, 20.4, 39.6), "20-40 s left"),
        (Eta(100.0, 10.0, 600.0), "up to 10 min left"),
        (Eta(7000.0, 3600.0, 3 * 3600.0), "1-3 h left"),
    ],
)
def test_the_time_left_is_said_in_one_unit(eta: Eta, words: str) -> None:
    """P9, P13, V2: one value, or a range where there is one."""
    assert describe_eta(eta) == words


def test_an_estimate_falls_with_its_age() -> None:
    """P13: one that is over is unknown again."""
    assert [describe_eta(Eta(16.2), age_s) for age_s in (0.9, 4.2, 16.2)] == ["~16 s left", "~12 s left", ""]
    assert describe_eta(Eta(30.0, 20.0, 40.0), 25.0) == "up to 15 s left"


def test_nothing_is_said_of_what_is_unknown() -> None:
    """P9, V2: no estimate, no words."""
    assert describe_eta(None) == ""
