"""`afoot browser`: the extension's folder, its key, and who is connected."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.cli.conftest import program
from tests.e2e.gateway import Gateway, serving, until
from tests.serve.extension.websocket_client import dialled, pairing

SHOP = {"id": "7", "title": "Shop", "url": "http://shop.example/"}
HELLO: dict[str, Any] = {
    "label": "work",
    "tabs": [SHOP, {"id": "8", "title": "Old", "url": "http://old.example/", "why": "reload"}],
    "rooms": [{"id": "r1", "tab": "7", "origin": "http://shop.example", "top": "http://shop.example"}],
}
TOOLS = {"room": "r1", "tools": [{"name": "buy"}, {"name": "sell"}]}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Somebody's home folder."""
    (tmp_path / "user").mkdir()
    return tmp_path / "user"


@pytest.fixture
def gateway(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gateway]:
    """A gateway of that person."""
    monkeypatch.setenv("HOME", str(home))
    with serving(tmp_path / "gateway") as started:
        yield started


def told(environment: dict[str, str], *words: str) -> dict[str, Any]:
    """What the command says as JSON."""
    done = program(("browser", "--json", *words), environment)
    assert done.returncode == 0 and done.stderr == "", done
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_without_a_gateway_the_extension_is_ready_to_be_loaded(lone: dict[str, str], home: Path) -> None:
    """B7: the visible folder, the steps, and a pairing for the gateway to come."""
    environment = {**lone, "HOME": str(home)}
    done = program(("browser",), environment)
    folder = home / "afoot-extension"
    assert done.returncode == 0 and str(folder) in done.stdout and "no gateway runs" in done.stdout
    for step in ("chrome://extensions", "Developer mode", "Load unpacked", "Allow User Scripts"):
        assert step in done.stdout
    url, key = pairing(folder)
    assert url == "ws://127.0.0.1:23668/link" and len(key) == 32
    assert folder.stat().st_mode & 0o777 == 0o700
    assert told(environment)["folder"] == str(folder) and pairing(folder) == (url, key)


def test_a_folder_that_was_named_stays_the_folder(lone: dict[str, str], tmp_path: Path) -> None:
    """B7: --to once is enough."""
    first = told(lone, "--to", str(tmp_path / "ext"))
    assert first["folder"] == str(tmp_path / "ext") and (tmp_path / "ext" / "manifest.json").is_file()
    assert first["gateway"] is None and first["browsers"] == [] and len(first["steps"]) == 3
    assert told(lone)["folder"] == str(tmp_path / "ext")


def test_a_folder_with_other_things_is_refused(lone: dict[str, str], tmp_path: Path) -> None:
    """E4: one line that says what to do."""
    (tmp_path / "ext").mkdir()
    (tmp_path / "ext" / "thesis.txt").write_text("mine")
    done = program(("browser", "--to", str(tmp_path / "ext")), lone)
    assert done.returncode == 2 and "is not empty" in done.stderr and done.stderr.count("\n") == 1
    assert os.listdir(tmp_path / "ext") == ["thesis.txt"]


@pytest.mark.parametrize("words", [("--try", "--to", "x"), ("--try", "--rotate")])
def test_what_does_not_go_together_is_refused(lone: dict[str, str], words: tuple[str, ...]) -> None:
    """E4: before anything is started."""
    done = program(("browser", *words), lone)
    assert done.returncode == 2 and "--try" in done.stderr


def test_a_gateway_tells_the_folders_where_it_is(tmp_path: Path) -> None:
    """B7: its port may be another each time; a second one gives it back."""
    with serving(tmp_path / "gateway") as first:
        folder = Path(told(first.environment, "--to", str(tmp_path / "ext"))["folder"])
        port = first.url.rpartition(":")[2].removesuffix("/mcp")
        before = pairing(folder)
        assert before[0] == f"ws://127.0.0.1:{port}/link"
        second = Gateway(tmp_path / "gateway", {"drain_s": 0.2})
        second.store = tmp_path / "other.db"
        second.start()
        try:
            assert pairing(folder)[0] == f"ws{second.url.removeprefix('http').removesuffix('mcp')}link"
        finally:
            second.stop()
        assert pairing(folder) == before
    with serving(tmp_path / "gateway") as third:
        assert pairing(folder)[0].split("/")[2] == third.url.split("/")[2] and pairing(folder)[1] == before[1]


def test_who_is_connected_is_shown_with_tabs_and_reasons(gateway: Gateway) -> None:
    """B6: ready or not, and why; in words and as JSON."""
    folder = Path(told(gateway.environment)["folder"])
    with dialled(gateway.url) as extension:
        extension.join(pairing(folder)[1], userScripts=False, **HELLO)
        extension.say("tab.tools", TOOLS)
        extension.say("ping")
        extension.got("ping")
        (one,) = told(gateway.environment)["browsers"]
        assert (one["name"], one["state"], one["user_scripts"]) == ("work", "connected", False)
        states = {tab["title"]: (tab["state"], tab["tools"]) for tab in one["tabs"]}
        assert states == {"Shop": ("ready", 2), "Old": ("unavailable", 0)}
        done = program(("browser",), gateway.environment)
        assert "work: connected since" in done.stdout and "2 tools  Shop" in done.stdout
        assert "reload this tab" in done.stdout and "Load unpacked" not in done.stdout
        assert "1 browser, 1 tab with tools" in program(("status",), gateway.environment).stdout
    done = program(("browser",), gateway.environment)
    assert "no browser is connected" in done.stdout and "Load unpacked" in done.stdout


def test_over_cdp_with_nobody_there_it_says_so_and_what_to_do(tmp_path: Path) -> None:
    """B5: nothing is attached, and no words about an extension that is not used."""
    with serving(tmp_path / "gateway", {"config": _cdp(tmp_path, "http://127.0.0.1:9")}) as gateway:
        status = until(lambda: _troubled(gateway), "the trouble", 20)
        assert "no browser at http://127.0.0.1:9" in status and "--remote-debugging-port" in status
        said = program(("browser", "--to", str(tmp_path / "ext")), gateway.environment).stdout
        assert "no browser is attached at http://127.0.0.1:9" in said and "--remote-debugging-port" in said
        assert "Load unpacked" not in said
        found = told(gateway.environment)
        assert found["cdp"] == "http://127.0.0.1:9" and found["troubles"]


def _cdp(folder: Path, address: str) -> Path:
    """A config file that names a debugging port."""
    (folder / "cdp.toml").write_text(f'[browser]\ncdp = "{address}"\n')
    return folder / "cdp.toml"


def _troubled(gateway: Gateway) -> str:
    said = program(("status",), {**gateway.environment, "COLUMNS": "300"}).stdout
    return said if "no browser at" in said else ""


def test_a_plugin_that_is_kept_from_running_is_not_called_closed(tmp_path: Path) -> None:
    """B2: its page may be open; what is missing is the switch."""
    plugin = Path(__file__).parents[4] / "examples" / "plugin"
    (tmp_path / "plugin.toml").write_text(f'[browser]\nplugins = ["{plugin}"]\n')
    with serving(tmp_path / "gateway", {"config": tmp_path / "plugin.toml"}) as gateway:
        folder = Path(told(gateway.environment, "--to", str(tmp_path / "ext"))["folder"])
        assert [one["state"] for one in told(gateway.environment)["plugins"]] == ["closed"]
        with dialled(gateway.url) as extension:
            extension.join(pairing(folder)[1], userScripts=False, **HELLO)
            extension.say("ping")
            extension.got("ping")
            [found] = told(gateway.environment)["plugins"]
            assert found["state"] == "unavailable" and "Allow User Scripts" in found["why"]


def test_a_new_key_closes_links_and_reaches_the_folders(gateway: Gateway) -> None:
    """B7: whoever has only the old one stays out from then on."""
    folder = Path(told(gateway.environment)["folder"])
    url, old = pairing(folder)
    with dialled(gateway.url) as extension:
        extension.join(old)
        assert "new key" in program(("browser", "--rotate"), gateway.environment).stdout
        assert extension.closed() == (4403, "the key has been changed")
    assert pairing(folder)[0] == url and pairing(folder)[1] != old
    with dialled(gateway.url) as extension:
        assert extension.prove(old).closed()[0] == 4401
    with dialled(gateway.url) as extension:
        extension.join(pairing(folder)[1])
    assert old.hex() not in gateway.said() and pairing(folder)[1].hex() not in gateway.said()


def test_a_new_key_is_made_without_a_gateway(lone: dict[str, str], tmp_path: Path) -> None:
    """B7: the next gateway asks for it."""
    folder = Path(told(lone, "--to", str(tmp_path / "ext"))["folder"])
    before = pairing(folder)
    told(lone, "--rotate")
    assert pairing(folder)[0] == before[0] and pairing(folder)[1] != before[1]
    assert (tmp_path / "home" / "link.key").read_text().strip() == pairing(folder)[1].hex()


def test_the_real_server_lets_nobody_else_in(gateway: Gateway) -> None:
    """S1: other origins, none at all, no subprotocol; and what is too long is the end of a link."""
    for origin in ("https://shop.example", None):
        with pytest.raises(InvalidStatus, match="403"), dialled(gateway.url, origin=origin):
            pass
    with pytest.raises(InvalidStatus, match="400"), dialled(gateway.url, subprotocol=None):
        pass
    with pytest.raises(InvalidStatus), dialled(f"{gateway.url.removesuffix('/mcp')}/elsewhere"):
        pass
    folder = Path(told(gateway.environment)["folder"])
    with dialled(gateway.url) as extension:
        extension.join(pairing(folder)[1])
        extension.raw("x" * (30 * 1024 * 1024))
        extension.say("ping")
        extension.got("ping")
        with pytest.raises(ConnectionClosed):  # while it is sent, or soon after
            extension.raw("x" * (41 * 1024 * 1024))
            extension.say("ping")
            extension.got("ping")
    assert "ERROR" not in gateway.said()


def test_links_are_closed_when_the_gateway_stops(gateway: Gateway) -> None:
    """X1: in order, and at once."""
    folder = Path(told(gateway.environment)["folder"])
    with dialled(gateway.url) as extension:
        extension.join(pairing(folder)[1])
        gateway.process.terminate()
        assert extension.closed() == (1001, "the gateway is stopping")
    assert until(lambda: gateway.process.poll() is not None, "its end") and gateway.process.returncode == 0
    assert "ERROR" not in gateway.said()


def test_the_doctor_looks_at_copies_and_browsers(gateway: Gateway, tmp_path: Path) -> None:
    """V4: a copy as it should be, an old one, and who is connected."""
    environment = gateway.environment
    for name in ("new", "old"):
        told(environment, "--to", str(tmp_path / name))
    known = Path(environment["AFOOT_HOME"]) / "browser.json"
    copies = json.loads(known.read_text())
    copies[1]["version"] = "0.0.1"
    known.write_text(json.dumps(copies))
    with dialled(gateway.url) as extension:
        extension.join(pairing(tmp_path / "new")[1], **HELLO)
        done = program(("doctor", "--json"), environment, tmp_path)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    new, old = (one for one in found if one["check"] == "extension")
    assert new["state"] == "ok" and str(tmp_path / "new") in new["text"]
    assert (old["state"], old["fix"]) == ("warn", "afoot browser") and "0.0.1" in old["text"]
    (work,) = (one for one in found if one["check"] == "browser work")
    assert work["state"] == "ok" and "connected" in work["text"]
