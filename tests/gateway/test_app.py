"""The composition root: what it decides before anything is served."""

from pathlib import Path

import pytest

from afoot.config.settings import Settings
from afoot.gateway import app
from afoot.store.lock import StoreLock


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder of the test's own."""
    monkeypatch.setenv("AFOOT_HOME", str(tmp_path))
    return tmp_path


def test_a_second_stdio_process_keeps_a_history_of_its_own(folder: Path) -> None:
    """H1: a host may start one process for each of its windows; none of them is refused."""
    assert app._own_history(Settings()) == Settings()
    with StoreLock(folder / "calls.db"):
        own = app._own_history(Settings())
    assert Path(own.store).parent == folder and own.store.endswith(".db")


def test_a_history_that_was_named_is_the_one_that_is_used(folder: Path) -> None:
    """H1: one gateway per store; who names a store that is taken is told so later."""
    named = Settings(store=str(folder / "mine.db"))
    with StoreLock(folder / "mine.db"):
        assert app._own_history(named) == named
