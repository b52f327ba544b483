"""A gateway whose tools are in browsers: its settings, its plugins, and the name that only tabs have."""

import asyncio
from pathlib import Path

import pytest
from msgspec import json
from msgspec.structs import replace

from afoot.config.settings import ConfigError, Server, Settings, load_settings
from afoot.config.tables import BrowserSettings
from afoot.errors import CallerError
from afoot.gateway import MEMORY, Gateway
from afoot.gateway.reload import ConfigSource, follow_config
from afoot.serve.gateway_state import GatewayState
from afoot.testing import run
from afoot.wire.extension import LinkHello, PageContextTools
from tests.providers.browser.fake_browser import Puppet, page_tool, room

PLUGIN = {"name": "notes", "version": "1.0", "matches": ["https://shop.example/*"], "files": ["notes.js"]}


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is known of the browsers of whoever runs the tests."""
    monkeypatch.setenv("AFOOT_HOME", str(tmp_path / "home"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A plugin."""
    found = tmp_path / "notes"
    found.mkdir()
    tool = {"name": "save", "description": "Saves."}
    (found / "plugin.json").write_bytes(json.encode({**PLUGIN, "tools": [tool]}))
    (found / "notes.js").write_text("defineTool({name: 'save', handle() { return 1; }});\n")
    return found


def named(gateway: Gateway) -> list[str]:
    """The tools of pages."""
    return [tool.name for tool in gateway.tools() if tool.source]


def test_the_table_is_read_with_folders_from_where_the_file_is(tmp_path: Path) -> None:
    """B2, B5: and flags change what they name."""
    file = tmp_path / "afoot.toml"
    file.write_text('[browser]\nplugins = ["notes", "~/more"]\nlink_grace_s = 2\n')
    found = load_settings(file, {"browser": {"cdp": "http://127.0.0.1:9222"}}).settings.browser
    assert found.plugins == [str(tmp_path / "notes"), str(Path.home() / "more")]
    assert (found.cdp, found.link_grace_s, found.tools_per_origin) == ("http://127.0.0.1:9222", 2.0, 64)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[browser]\nplugin = []\n", "line 2): unknown; nearest: plugins"),
        ("[browser]\nlink_grace_s = -1\n", "line 2): must not be negative"),
        ("browser = 3\n", "line 1): must be a table"),
        ('[servers.browser]\ncommand = "x"\n', "line 2): browser means the tabs of browsers"),
    ],
)
def test_a_wrong_table_is_named_with_its_line(tmp_path: Path, text: str, told: str) -> None:
    """E4: file, line and key."""
    (tmp_path / "afoot.toml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_settings(tmp_path / "afoot.toml")
    assert told in str(caught.value)


def test_tabs_may_be_all_that_is_served() -> None:
    """B5: with a browser configured, or where that is wanted; else there is nothing to serve."""

    async def main() -> None:
        async with Gateway(
            settings=Settings(store=MEMORY, browser=BrowserSettings(plugins=["nowhere"]))
        ) as one:
            assert [tool.name for tool in one.tools()] == ["afoot_tabs"]
            assert any("nowhere" in problem for problem in one.browser.problems)
        bare = Gateway(settings=Settings(store=MEMORY))
        bare.bare = True
        async with bare:
            assert bare.tools() == []
        with pytest.raises(CallerError, match="nothing to serve"):
            async with Gateway(settings=Settings(store=MEMORY)):
                pass

    run(main())


def test_a_plugin_s_folder_is_a_target_and_its_changes_are_followed(folder: Path) -> None:
    """B2: its tools are listed with no tab open; new code is another digest, and browsers are told."""

    async def main() -> None:
        async with Gateway(str(folder), settings=Settings(store=MEMORY)) as gateway:
            assert {tool.name for tool in gateway.tools()} == {"afoot_tabs", "notes_save"}
            before = gateway.engine.catalog.get("notes_save")[1]
            assert before.approval == "ask" and before.source.startswith("plugin:notes@")
            (folder / "notes.js").write_text("defineTool({name: 'save', handle() { return 2; }});\n")
            assert [gateway.browsing.check_files() for _ in range(2)] == [False, True]
            await asyncio.sleep(0)
            after = gateway.engine.catalog.get("notes_save")[1]
            assert after.source != before.source and after.digest != before.digest

    run(main())


def test_a_running_gateway_looks_at_the_files_of_plugins(folder: Path) -> None:
    """B2: hot reload; a mistake keeps the old code, and is said."""

    async def main() -> None:
        settings = Settings(store=MEMORY)
        async with Gateway(folder, settings=settings) as gateway:
            site = GatewayState(gateway.engine, settings, "1")
            following = asyncio.create_task(follow_config(gateway, site, ConfigSource(folder / "none.toml")))
            before = gateway.engine.catalog.get("notes_save")[1].source
            (folder / "notes.js").write_text("defineTool({name: 'save', handle() { return 3; }});\n")
            await asyncio.sleep(3)
            after = gateway.engine.catalog.get("notes_save")[1].source
            (folder / "plugin.json").write_text("{")
            await asyncio.sleep(3)
            assert before != after == gateway.engine.catalog.get("notes_save")[1].source
            assert any("plugin.json" in problem for problem in gateway.browser.problems)
            following.cancel()

    run(main())


def test_settings_that_are_read_again_count_for_tabs_too() -> None:
    """C3: limits and how many tools are listed; where CDP is needs a new start."""

    async def main() -> None:
        settings = Settings(store=MEMORY, browser=BrowserSettings(tools_per_origin=1), idle_s=7.0)
        gateway = Gateway(settings=settings)
        gateway.bare = True
        async with gateway:
            puppet = Puppet()
            gateway.browser.on_connect(puppet, LinkHello("1", "p1", [room()]))
            gateway.browser.on_frame(puppet, PageContextTools("r1", [page_tool(), page_tool("pay")]))
            await asyncio.sleep(0)
            assert named(gateway) == ["shop_example_add"]
            assert gateway.engine.catalog.get("shop_example_add")[1].limits.idle_s == 7.0
            other = BrowserSettings("http://127.0.0.1:1", tools_per_origin=2)
            assert gateway.adopt(replace(settings, browser=other, idle_s=9.0)) == ["browser.cdp"]
            assert named(gateway) == ["shop_example_add", "shop_example_pay"]
            assert gateway.engine.catalog.get("shop_example_add")[1].limits.idle_s == 9.0
            own = replace(settings, servers={"browser": Server(approval="auto", ceiling_s=3.0)})
            gateway.adopt(own)
            tool = gateway.engine.catalog.get("shop_example_add")[1]
            assert (tool.approval, tool.limits.ceiling_s) == ("auto", 3.0)

    run(main())


def test_another_server_called_browser_gets_another_name(tmp_path: Path) -> None:
    """U3: from a host's file, which is not ours to change."""

    async def main() -> None:
        file = tmp_path / "mcp.json"
        file.write_bytes(json.encode({"mcpServers": {"browser": {"command": "/nowhere/at/all"}}}))
        async with Gateway(str(file), settings=Settings(store=MEMORY)) as gateway:
            [server] = gateway.servers.list()
            assert (server.name, server.entry.why) == ("browser-server", "")
            assert any("is called browser-server here" in problem for problem in gateway.servers.problems)

    run(main())
