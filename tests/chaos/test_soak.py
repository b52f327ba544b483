"""A short soak: every trouble once, with a fixed seed; `scripts/soak` has as many minutes as one likes."""

from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal

from tests.soak.driver import Soak, plan
from tests.soak.figures import Figures, Sampler, plateau
from tests.soak.place import Place, place
from tests.soak.troubles import ALL_TROUBLES

SEED = 7
SECONDS = 20.0


@pytest.mark.timeout(400)
def test_a_short_soak_holds(tmp_path: Path) -> None:
    """S8, H1, H2, P4, U4: load, kills, stops, a full disk and a set clock; the history tells the truth."""
    with start_blocking_portal() as portal, place(tmp_path / "soak") as ground:
        soak = Soak(ground, SEED, portal, print)
        problems = soak.run(SECONDS)
    assert not problems, "\n".join(problems[:20])
    assert {phase.trouble for phase in soak.phases} == set(ALL_TROUBLES)
    assert soak.judge.ends.get("ok", 0) > 20, soak.judge.ends


def test_a_plan_is_the_seeds_own() -> None:
    """S8: a seed repeats the order of the troubles; a long soak has lives that can be compared."""
    assert plan(3, 300) == plan(3, 300) != plan(4, 300)
    names = [phase.trouble for phase in plan(3, 300)]
    assert set(names) == set(ALL_TROUBLES) and names.count("kill gateway") == 2


def test_a_figure_that_grows_is_told_from_one_that_does_not() -> None:
    """S8: by the medians of both halves, so that one odd pause says nothing."""
    assert plateau([10, 10, 90, 10, 10, 10]) == (10, 10)
    assert plateau([10, 12, 14, 16, 18, 20]) == (12, 18)
    assert Figures(1.0, 1, 70.0, 30, 6, 2).tasks == 0


def test_memory_is_judged_once_a_gateway_has_served_many_calls(tmp_path: Path) -> None:
    """S8: on a busy machine its memory still rises after half of its pauses; a leak goes on rising."""
    sampler = Sampler(Place(tmp_path))
    rising = [80.0, 85.0, 86.0, 87.0, 100.0, 104.0, 105.0, 106.0]
    sampler.pauses = [
        Figures(60.0 * n, 1, rss_mb, 40, 8, 5, calls=100 * n) for n, rss_mb in enumerate(rising)
    ]
    assert sampler.problems() == []
    leaking = [Figures(60.0 * n, 2, 100.0 + 4 * n, 40, 8, 5, calls=200 * n) for n in range(20)]
    sampler.pauses += leaking
    [problem] = sampler.problems()
    assert problem.startswith("gateway 2: rss_mb grew")
