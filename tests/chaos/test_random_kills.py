"""Random kills of gateway, children and servers under load."""

from pathlib import Path

import pytest

from tests.chaos.random_kills import storm


@pytest.mark.timeout(240)
def test_nothing_acknowledged_is_lost_and_nothing_runs_twice_that_may_not(tmp_path: Path) -> None:
    """H1, U4: in a few kills here; `python -m tests.chaos.random_kills 1000` has as many as one likes."""
    assert "6 kills" in storm(tmp_path, 6, 7)
