"""Sessions that were ended: known as such to the next gateway too, for as long as that matters."""

from pathlib import Path

import pytest

from afoot.serve.mcp.sessions_2025 import SESSION_MAX_AGE_S, EndedSessions

DAY_S = 86_400.0
AT = 20_000 * DAY_S  # when the sessions here are opened


def test_what_was_ended_is_known_to_the_next_gateway_and_to_one_beside(tmp_path: Path) -> None:
    """D2, S3: also what is ended after it was read; others are not touched by it."""
    beside = EndedSessions(tmp_path / "ended")
    assert not beside.has("first", AT)
    EndedSessions(tmp_path / "ended").add("first", AT, AT)
    assert beside.has("first", AT) and not beside.has("second", AT)
    EndedSessions(tmp_path / "ended").add("second", AT + 9, AT + 10)
    assert beside.has("second", AT + 9) and EndedSessions(tmp_path / "ended").has("first", AT)
    assert not beside.has("first", AT + DAY_S)


def test_no_key_stands_in_the_folder_and_nobody_else_reads_it(tmp_path: Path) -> None:
    """S4: it is a secret, even of a session that is over."""
    folder = tmp_path / "ended"
    EndedSessions(folder).add("the-key", AT, AT)
    [file] = folder.iterdir()
    assert "the-key" not in file.read_text()
    assert (folder.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o700, 0o600)


def test_the_days_whose_sessions_are_too_old_anyway_are_taken_away(tmp_path: Path) -> None:
    """H6: the folder does not grow for ever."""
    ended = EndedSessions(tmp_path)
    for n in range(20):
        opened = AT + n * DAY_S
        ended.add(f"key {n}", opened, opened)
        (tmp_path / "readme").touch()
    now = AT + 19 * DAY_S
    kept = [n for n in range(20) if ended.has(f"key {n}", AT + n * DAY_S)]
    assert all(AT + n * DAY_S < now - SESSION_MAX_AGE_S for n in range(20) if n not in kept)
    assert len(kept) <= SESSION_MAX_AGE_S / DAY_S + 2 and (tmp_path / "readme").exists()


def test_what_cannot_be_read_lets_nobody_in(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """S3: it may tell of this very session; its client opens another."""
    (tmp_path / str(int(AT // DAY_S))).mkdir()
    assert EndedSessions(tmp_path).has("key", AT) and "not known again" in caplog.text


def test_what_cannot_be_written_is_known_as_long_as_this_gateway_lives(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """S3: and it is said that it is not known longer."""
    (tmp_path / "file").touch()
    ended = EndedSessions(tmp_path / "file" / "ended")
    ended.add("key", AT, AT)
    assert ended.has("key", AT) and "after a restart" in caplog.text
    without = EndedSessions()
    without.add("key", AT, AT)
    assert without.has("key", AT) and not without.has("other", AT)
