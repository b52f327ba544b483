"""Each host's file as it was, after an undo; and with what others did to it meanwhile."""

from pathlib import Path

import pytest

from afoot.config import settings
from afoot.hosts import install, records, secrets_file
from tests.hosts.conftest import placed
from tests.hosts.install_steps import config_text, installed, read, tables, undone
from tests.hosts.sample_files import NAMES, SAMPLES, Sample

every_sample = pytest.mark.parametrize("sample", SAMPLES, ids=NAMES)


@every_sample
@pytest.mark.parametrize("is_adopting", [False, True])
def test_undo_gives_the_same_bytes(sample: Sample, is_adopting: bool) -> None:
    """U2: also in two steps, first the entry and then the servers."""
    wish = placed(sample)
    installed(wish)
    installed(wish, is_adopting=is_adopting)
    undone(wish)
    assert wish.file.read_bytes() == sample.data
    assert records.read_records() == {} and secrets_file.read_all() == {}
    assert config_text() == ""


@every_sample
@pytest.mark.parametrize("is_adopting", [False, True])
def test_undo_after_other_edits_keeps_them(sample: Sample, is_adopting: bool) -> None:
    """U2: a server and a comment that somebody added meanwhile stay, ours go, adopted ones come back."""
    wish = placed(sample)
    before = read(wish)
    installed(wish, is_adopting=is_adopting)
    text = wish.file.read_bytes().decode()
    if wish.host.is_toml:
        text = f'# mine\n{text}\n[mcp_servers.new]\ncommand = "new"\n'
    else:
        place = text.index('"afoot": {')
        text = f'{text[:place]}"new": {{"command": "new"}}, {text[place:]}// mine\n'
    wish.file.write_bytes(text.encode())
    undone(wish)
    after = read(wish)
    assert after[wish.host.key].pop("new") == {"command": "new"}
    assert after == before and "mine\n" in wish.file.read_text()
    assert config_text() == "" and secrets_file.read_all() == {}


def test_adopted_servers_come_back_in_their_order(home: Path) -> None:
    """U2: with the comments inside them."""
    wish = placed(next(one for one in SAMPLES if one.host == "zed"))
    installed(wish, is_adopting=True)
    wish.file.write_text(wish.file.read_text().replace('"ui_font_size": 16', '"ui_font_size": 18'))
    undone(wish)
    text = wish.file.read_text()
    assert list(read(wish)["context_servers"]) == ["postgres-context-server", "notes", "older", "remote"]
    assert text.replace("18, // points", "16, // points") == SAMPLES[6].text


def test_without_a_record_only_the_entry_is_removed_and_it_says_so(home: Path) -> None:
    """U2: the state folder was lost."""
    wish = placed(SAMPLES[3])
    installed(wish, is_adopting=True)
    (settings.home() / "hosts.json").unlink()
    plan = undone(wish)
    assert any("no record" in note for note in plan.notes)
    assert read(wish)["mcpServers"].keys() == SAMPLES[3].left.keys()
    assert config_text() != ""


def test_a_server_changed_in_afoot_toml_stays_there(home: Path) -> None:
    """U2: undo says so."""
    wish = placed(SAMPLES[3])
    file = install.config_file(None)
    file.parent.mkdir(parents=True)
    file.write_text("# mine\nidle_s = 60.0\n")
    installed(wish, is_adopting=True)
    file.write_text(file.read_text().replace('args = ["@playwright/mcp@latest"]', "args = []"))
    plan = undone(wish)
    assert "changed" in plan.left["servers.playwright"]
    assert set(tables()) == {"playwright"} and file.read_text().startswith("# mine\nidle_s = 60.0\n")
    assert wish.file.read_bytes() == SAMPLES[3].data
