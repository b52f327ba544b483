"""`afoot new`: what it writes works as it is, and nothing that is there is lost."""

import json
import subprocess
from pathlib import Path

import pytest

from afoot.providers.browser.plugins.plugin import load_plugin
from tests.cli.conftest import program

NODE = Path(__file__).parents[4] / ".venv" / "bin" / "node"


def test_a_new_plugin_is_taken_and_its_test_passes(
    tmp_path: Path, lone: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """B2, P2: its folder can be served at once, and its handler runs in Node with and without a context."""
    done = program(("new", "plugin", "tea-shop", "--url", "https://tea.example/*"), lone, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "wrote tea-shop/plugin.json"
    assert "serve tea-shop, and open https://tea.example/" in done.stderr
    monkeypatch.setenv("AFOOT_HOME", lone["AFOOT_HOME"])
    plugin = load_plugin(tmp_path / "tea-shop")
    assert (plugin.name, plugin.matches) == ("tea-shop", ["https://tea.example/*"])
    tested = subprocess.run(
        [NODE, "--test"], cwd=tmp_path / "tea-shop", capture_output=True, text=True, timeout=25, check=False
    )
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert "pass 1" in tested.stdout


def test_the_tool_that_is_listed_is_the_one_that_is_defined(tmp_path: Path, lone: dict[str, str]) -> None:
    """B2: plugin.json and the code agree, to the letter."""
    program(("new", "plugin", "tea", "--url", "https://tea.example/*", "--to", str(tmp_path / "x")), lone)
    script = (
        'import "./afoot-sdk.js"; import "./tools.js"; console.log(JSON.stringify(findTool("read_page")))'
    )
    (tmp_path / "x" / "show.mjs").write_text(script)
    shown = subprocess.run(
        [NODE, tmp_path / "x" / "show.mjs"], capture_output=True, text=True, timeout=25, check=True
    )
    [listed] = json.loads((tmp_path / "x" / "plugin.json").read_text())["tools"]
    assert json.loads(shown.stdout) == listed


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("Tea", "--url", "https://tea.example/*"), "name: 'Tea' is no name"),
        (("tea", "--url", "<all_urls>"), "--url: '<all_urls>' is too broad: name the site"),
        (("tea", "--url", "tea.example"), "--url: 'tea.example' is no match pattern"),
        (("tea",), "requires an argument"),
    ],
)
def test_what_cannot_be_a_plugin_is_not_written(
    tmp_path: Path, lone: dict[str, str], words: tuple[str, ...], told: str
) -> None:
    """E4: one line, and no folder."""
    done = program(("new", "plugin", *words), lone, tmp_path)
    assert done.returncode == 2 and told in done.stderr
    assert not (tmp_path / words[0]).exists()


def test_nothing_is_overwritten(tmp_path: Path, lone: dict[str, str]) -> None:
    """House: what somebody wrote stays, and nothing is written beside it."""
    (tmp_path / "tea").mkdir()
    (tmp_path / "tea" / "tools.js").write_text("mine")
    done = program(("new", "plugin", "tea", "--url", "https://tea.example/*", "--json"), lone, tmp_path)
    assert done.returncode == 2 and "tools.js is there already" in json.loads(done.stdout)["error"]["message"]
    assert [file.name for file in (tmp_path / "tea").iterdir()] == ["tools.js"]
    assert (tmp_path / "tea" / "tools.js").read_text() == "mine"


def test_the_sdk_is_written_anew(tmp_path: Path, lone: dict[str, str]) -> None:
    """B2: for unit tests, over an older one."""
    (tmp_path / "afoot-sdk.js").write_text("old")
    done = program(("new", "sdk", "--json"), lone, tmp_path)
    assert json.loads(done.stdout) == {"written": ["afoot-sdk.js"]}
    assert "fetchJSON" in (tmp_path / "afoot-sdk.js").read_text()
