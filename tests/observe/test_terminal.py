"""Words for a terminal: how long a call still takes."""

import pytest

from afoot.observe.eta import Eta
from afoot.observe.terminal import left


@pytest.mark.parametrize(
    ("low_s", "high_s", "words"),
    [
        (120.0, 240.0, "about 2-4 min left"),
        (20.4, 39.6, "about 20-40 s left"),
        (100.0, 119.9, "about 100-120 s left"),
        (118.0, 122.0, "about 2 min left"),
        (10.0, 600.0, "up to 10 min left"),
        (3600.0, 3 * 3600.0, "about 1-3 h left"),
        (0.0, 0.2, "up to 1 s left"),
    ],
)
def test_a_range_is_said_in_one_unit(low_s: float, high_s: float, words: str) -> None:
    """P9, V2: no more exact than anybody knows."""
    assert left(Eta(low_s, high_s)) == words


def test_nothing_is_said_of_what_is_unknown() -> None:
    """P9, V2: no range, no words."""
    assert left(None) == ""
