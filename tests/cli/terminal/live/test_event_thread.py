"""Events and keys together: what was typed too early counts for nothing."""

import os
import pty
from collections.abc import Iterator

import pytest

from afoot.cli.terminal.live.event_thread import EventThread


@pytest.fixture
def keyboard(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The other end of a terminal that is our stdin."""
    master, slave = pty.openpty()
    with os.fdopen(slave) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        yield master
    os.close(master)


def test_what_was_typed_for_another_question_approves_nothing(
    keyboard: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A6: a key that was meant for the call before decides nothing of the next."""
    monkeypatch.setattr("afoot.cli.terminal.live.event_thread.IGNORE_KEYS_S", 0.05)
    with EventThread(lambda: iter(["something"])) as pump:
        os.write(keyboard, b"first\nr\nr\n")
        assert pump.read_line(lambda: True, lambda _: None) == "first"
        pump.drop_typed()
        os.write(keyboard, b"s\n")
        assert pump.read_line(lambda: True, lambda _: None) == "s"
