"""Sessions that were ended: known as such to the next gateway too, for as long as that matters."""

from pathlib import Path

import pytest

from afoot.serve.mcp import sessions_2025
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


def test_sessions_without_end_that_are_ended_fill_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S5, D2: of a day with too many, none is known again; other days are not touched."""
    monkeypatch.setattr(sessions_2025, "MAX_ENDED_BYTES", 10 * 33)
    ended = EndedSessions(tmp_path)
    ended.add("yesterday", AT - 86_400, AT)
    for number in range(50):
        ended.add(f"key-{number}", AT, AT)
    assert (tmp_path / str(int(AT // 86_400))).stat().st_size == 10 * 33
    assert ended.has("key-49", AT) and ended.has("one that was not ended", AT)
    assert ended.has("yesterday", AT - 86_400) and not ended.has("another", AT - 86_400)


def test_a_session_that_is_ended_has_no_other_read_again(tmp_path: Path) -> None:
    """S5: who ends sessions again and again keeps nobody waiting: only what was added is read."""
    ended = EndedSessions(tmp_path)
    ended.add("first", AT, AT)
    assert ended.has("first", AT)
    file = tmp_path / str(int(AT // 86_400))
    with file.open("r+b") as out:  # a change that only one who reads all of it again would see
        out.write(b"0" * 32)
    ended.add("second", AT, AT)
    assert ended.has("second", AT) and ended.has("first", AT)
    assert not EndedSessions(tmp_path).has("first", AT)


def test_sessions_that_are_ended_without_a_folder_fill_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """S5: the oldest are forgotten; this gateway knows none of them again by itself."""
    monkeypatch.setattr(sessions_2025, "MAX_ENDED_IN_MEMORY", 10)
    ended = EndedSessions()
    for number in range(50):
        ended.add(f"key-{number}", AT, AT)
    assert [ended.has(f"key-{number}", AT) for number in (0, 39, 40, 49)] == [False, False, True, True]
