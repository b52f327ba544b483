"""Settings: file, environment and flags, where each came from, and what a wrong one is told."""

import os
from pathlib import Path

import pytest

from afoot.config import ConfigError, Settings, find, home, load


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder with nothing in it, and no setting in the environment."""
    for name in [name for name in os.environ if name.startswith(("AFOOT_", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


def written(folder: Path, text: str) -> Path:
    """A config file."""
    file = folder / "afoot.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def refused(file: Path | None = None, **flags: object) -> str:
    """Why these settings are not taken."""
    with pytest.raises(ConfigError) as caught:
        load(file, flags)
    return str(caught.value)


def test_without_anything_the_defaults_hold() -> None:
    """C1: the number in the docs is the number in force."""
    loaded = load()
    assert loaded.settings == Settings() and loaded.file is None
    assert set(loaded.origin.values()) == {"default"}
    found = loaded.settings
    assert (found.idle_s, found.ceiling_s, found.answer_s, found.queue_limit_s) == (30, 300, 600, 60)


def test_a_flag_wins_over_the_environment_and_that_over_the_file(
    alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C3: and each value says where it came from."""
    file = written(alone, "idle_s = 1\nceiling_s = 10\nanswer_s = 100\n")
    monkeypatch.setenv("AFOOT_CEILING_S", "20")
    monkeypatch.setenv("AFOOT_ANSWER_S", "200")
    loaded = load(file, {"answer_s": 300})
    found, origin = loaded.settings, loaded.origin
    assert (found.idle_s, found.ceiling_s, found.answer_s) == (1, 20, 300)
    assert (origin["idle_s"], origin["ceiling_s"], origin["answer_s"]) == (
        str(file),
        "AFOOT_CEILING_S",
        "flag",
    )
    assert origin["queue_limit_s"] == "default"


@pytest.mark.parametrize(
    "key", [key for key in Settings.__struct_fields__ if key not in ("tools", "servers")]
)
def test_every_setting_has_a_variable(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Design 5: AFOOT_<KEY>; tables are written in a file."""
    values = {"lifecycle": "stages", "history": "required", "durable": "full"}
    value = values.get(key, "7")
    monkeypatch.setenv(f"AFOOT_{key.upper()}", value)
    loaded = load()
    found = getattr(loaded.settings, key)
    assert loaded.origin[key] == f"AFOOT_{key.upper()}"
    assert found in (value, 7, ["7"])


def test_a_list_in_the_environment_is_cut_at_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    """Design 5: empty parts are none."""
    monkeypatch.setenv("AFOOT_ALLOW_ORIGINS", "https://a.example,,https://b.example,")
    assert load().settings.allow_origins == ["https://a.example", "https://b.example"]


def test_limits_of_tools_and_servers_are_tables(alone: Path) -> None:
    """C3: per server and per tool."""
    file = written(alone, "[tools.export]\nidle_s = 5\n[servers.local]\nceiling_s = 900\n")
    found = load(file).settings
    assert (found.tools, found.servers) == ({"export": {"idle_s": 5}}, {"local": {"ceiling_s": 900}})


def test_the_nearest_file_upward_counts_then_the_users(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Design 5: AFOOT_CONFIG, afoot.toml upward, the user's config folder."""
    assert find() is None
    users = written(alone / "home" / ".config" / "afoot", "idle_s = 1\n")
    assert find() == users
    upward = written(alone, "idle_s = 2\n")
    assert find() == upward
    named = alone / "other.toml"
    named.write_text("idle_s = 3\n")
    monkeypatch.setenv("AFOOT_CONFIG", str(named))
    assert find() == named and load().settings.idle_s == 3 and load().file == named


def test_the_state_folder_can_be_moved(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Design 5: AFOOT_HOME, else the user's state folder."""
    assert home() == alone / "home" / ".local" / "state" / "afoot"
    monkeypatch.setenv("XDG_STATE_HOME", str(alone / "state"))
    assert home() == alone / "state" / "afoot"
    monkeypatch.setenv("AFOOT_HOME", str(alone / "afoot"))
    assert home() == alone / "afoot"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('idle_s = "soon"', "idle_s"),
        ("idle_s = -1", "idle_s"),
        ("idle_s = nan", "idle_s"),
        ("max_body_bytes = 1.5", "max_body_bytes"),
        ("http = 5", "http"),
        ('lifecycle = "all"', "lifecycle"),
        ('history = "maybe"', "history"),
        ('durable = "very"', "durable"),
        ('allow_origins = "https://a.example"', "allow_origins"),
        ("allow_origins = [1]", "allow_origins"),
        ("tools = 5", "tools"),
        ("[tools.export]\nidle = 5", "tools.export.idle"),
        ('[tools.export]\nidle_s = "soon"', "tools"),
    ],
)
def test_a_wrong_value_is_told_with_file_and_key(alone: Path, text: str, key: str) -> None:
    """Bad input: what to change, and where."""
    file = written(alone, text + "\n")
    told = refused(file)
    assert f"setting {key}" in told and str(file) in told


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("idel_s = 5", "'idel_s'"),
        ("[tools.export]\nidle_s = -5", "tools.export.idle_s"),
        ('[tools.export]\nidle_s = "soon"', "tools.export.idle_s"),
    ],
)
def test_a_wrong_key_or_limit_is_told_with_file_and_whole_key(alone: Path, text: str, key: str) -> None:
    """Bad input: also unknown settings, and values inside tables."""
    file = written(alone, text + "\n")
    told = refused(file)
    assert key in told and str(file) in told


def test_a_wrong_value_in_the_environment_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bad input: and not the file."""
    monkeypatch.setenv("AFOOT_IDLE_S", "soon")
    assert "setting idle_s (AFOOT_IDLE_S)" in refused()


def test_a_wrong_flag_says_that_it_is_one() -> None:
    """Bad input: from the command line."""
    assert "setting ceiling_s (flag)" in refused(ceiling_s="never")


def test_a_file_that_cannot_be_read_is_named(alone: Path) -> None:
    """Bad input: missing, not TOML, not text."""
    missing = alone / "missing.toml"
    assert f"config {missing} cannot be read: No such file" in refused(missing)
    broken = written(alone, "idle_s = = 5\n")
    assert f"config {broken}: " in refused(broken) and "line 1" in refused(broken)
    broken.write_bytes(b"idle_s = '\xff'\n")
    assert f"config {broken}: " in refused(broken)
