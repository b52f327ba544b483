"""The names of tools of pages and plugins: they say whose they are, fit every host, and stay theirs."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw, json

from afoot.core.facts import Limits
from afoot.core.ports import Tool
from afoot.engine.catalog import Catalog
from afoot.providers.browser.tools.names import MAX_NAMES, ToolNames, name_stem, tool_name, with_hash
from tests.engine.fake_engine import Bench
from tests.providers.browser.fake_browser import page_tool, plugin, room, scene

HAS_FAKE_CLOCK = True
FITS = re.compile(r"[A-Za-z0-9_-]{1,64}")
origins = st.from_regex(r"https?://[a-z0-9_.-]{1,80}(:[0-9]{2,5})?", fullmatch=True)
tools = st.text(min_size=1, max_size=128)


@given(st.lists(st.tuples(origins, tools, st.sampled_from(["d1", "d2"])), max_size=30, unique=True))
def test_every_name_fits_every_host_and_no_two_are_the_same(wanted: list[tuple[str, str, str]]) -> None:
    """B2: whatever pages call themselves and their tools."""
    names, used = ToolNames(), set[str]()
    for origin, tool, variant in wanted:
        name = names.assign(tool_name(name_stem(origin), tool), f"page:{origin} {tool}", variant, used)
        assert FITS.fullmatch(name) and name not in used and not name.startswith("afoot_")
        used.add(name)


@given(st.lists(st.tuples(origins, tools), min_size=1, max_size=10, unique=True), st.randoms())
def test_a_name_stays_with_whom_it_was_given_to_whoever_comes_first_next_time(
    wanted: list[tuple[str, str]], chance: object
) -> None:
    """B2: after a restart in another order everybody has the name it had."""

    def all_named(names: ToolNames, order: list[tuple[str, str]]) -> dict[tuple[str, str], str]:
        found: dict[tuple[str, str], str] = {}
        for origin, tool in order:
            wish = tool_name(name_stem(origin), tool)
            found[origin, tool] = names.assign(wish, f"page:{origin} {tool}", "", set(found.values()))
        return found

    first = ToolNames()
    before = all_named(first, wanted)
    again = list(wanted)
    chance.shuffle(again)  # pyrefly: ignore[missing-attribute]
    assert all_named(ToolNames(first.owners), again) == before


def test_a_name_says_host_and_port_and_is_cut_with_a_mark() -> None:
    """B2: the usual port is left out, as in an origin."""
    assert tool_name(name_stem("https://shop.example"), "add") == "shop_example_add"
    assert tool_name(name_stem("http://localhost:8080"), "add.item") == "localhost_8080_add_item"
    long = tool_name(name_stem("https://shop.example"), "x" * 100)
    assert len(long) == 64 and long.startswith("shop_example_xxx") and re.search(r"_[0-9a-f]{8}$", long)
    assert tool_name("afoot", "wait") == "page_afoot_wait"


def test_old_names_make_room_and_those_in_use_stay() -> None:
    """B2: a page that makes up names for ever fills no memory."""
    names = ToolNames({f"n{number}": "somebody" for number in range(MAX_NAMES + 5)})
    names.forget_oldest({"n0"})
    assert len(names.owners) == MAX_NAMES and "n0" in names.owners and "n1" not in names.owners


async def test_a_page_cannot_take_the_name_of_another_tool() -> None:
    """B2: whoever else has it, or gets it later, keeps it; the page's is marked."""
    async with scene() as play:
        bench = Bench()

        async def body(run: object) -> str:
            return "ours"

        bench.add(body, "shop_example_add")
        play.open(page_tool())
        play.engine.catalog.put(bench)
        own, theirs = [tool for tool in play.listed() if tool.name.startswith("shop_example_add")]
        assert (own.server, own.name) == ("bench", "shop_example_add")
        assert theirs.server == "browser" and theirs.name != own.name and FITS.fullmatch(theirs.name)
        assert json.decode(theirs.definition)["name"] == theirs.name
        assert play.engine.catalog.get("shop_example_add")[1].server == "bench"
        assert play.engine.catalog.get("browser/shop_example_add")[1] is theirs


@pytest.mark.parametrize("first", ["page", "plugin"])
async def test_a_page_cannot_take_the_name_of_a_plugin_in_any_order(first: str) -> None:
    """B2: a page of the host `notes`, whichever of the two is there first; also after a restart."""
    async with scene() as play:
        mine = plugin("h1", page_tool("add"))
        if first == "plugin":
            play.browser.set_plugins([mine])
            assert play.names() == ["notes_add"]
        play.open(page_tool("add"), origin="http://notes", top="http://notes")
        if first == "page":
            assert play.names() == ["notes_add"], "nobody else wants it yet"
            play.browser.set_plugins([mine])
        sources = {tool.name: tool.source for tool in play.listed() if tool.source}
        assert sources.pop("notes_add") == mine.source
        assert list(sources.values()) == ["page:http://notes"] and all(map(FITS.fullmatch, sources))
        owners = play.browser._tool_list.names.owners
        play.browser.set_plugins([])
        assert owners["notes_add"] == "plugin:notes add", "a page that comes back does not get it either"
        assert "notes_add" not in play.names()


async def test_a_plugin_gets_the_name_back_that_a_page_had_before_a_restart() -> None:
    """B2: the names of an older version are kept in the state folder, and the page had come first."""
    names = ToolNames({"notes_add": "page:http://notes add", "notes_add_11111111": "plugin:notes add"})
    assert not names.is_kept("notes_add_11111111", "notes_add", "plugin:notes add")
    assert names.assign("notes_add", "plugin:notes add", "", set()) == "notes_add" and names.has_changed
    assert names.assign("notes_add", "page:http://notes add", "", {"notes_add"}) != "notes_add"
    assert names.assign("notes_add", "plugin:other add", "", set()) != "notes_add", "plugins are equals"


def test_a_page_changes_no_name_of_servers_that_collide() -> None:
    """B2: nor does it become what a name that is switched off, or ambiguous, means."""
    catalog = Catalog()
    for number, name in enumerate(("one", "two")):
        bench = Bench()
        bench.name = name
        bench.add(lambda run: _nothing(), "search", digest=str(number))
        catalog.put(bench)
    before = sorted(catalog.known)
    page = Bench()
    page.name = "browser"
    page._tools["search"] = Tool("search", "browser", Raw(b"{}"), Limits(), source="page:https://x")
    catalog.put(page)
    assert before == ["one__search", "two__search"]
    assert set(catalog.known) == {*before, with_hash("search", "page:https://x search")}


async def _nothing() -> str:
    return ""


async def test_two_definitions_of_one_name_are_two_tools_and_keep_their_names() -> None:
    """B2: the tab that was there first keeps the plain name, also when the other goes."""
    async with scene() as play:
        play.open(page_tool(), room_id="r1", tab="1")
        play.open(page_tool(schema={"properties": {"n": {}}}), room_id="r2", tab="2")
        first, second = play.names()
        assert first == "shop_example_add" and second.startswith("shop_example_add_")
        assert play.names() == [first, second]


async def test_two_tabs_of_one_page_offer_one_tool() -> None:
    """B2: one tool per source and definition, however many tabs have it."""
    async with scene() as play:
        play.open(page_tool(), room_id="r1", tab="1")
        play.open(page_tool(), room_id="r2", tab="2")
        assert play.names() == ["shop_example_add"]


async def test_a_frame_of_a_stranger_never_has_the_plain_name() -> None:
    """A1, B2: framed tools are off, and when they are on they are called otherwise."""
    async with scene() as play:
        play.open(page_tool(), frame="3", top="https://evil.example")
        [tool] = [tool for tool in play.browser.tools() if tool.source]
        assert tool.name.startswith("shop_example_add_") and tool.default_approval == "off"
        assert tool.source == "page:https://shop.example in https://evil.example"
        play.open(page_tool(), room_id="r2")
        assert "shop_example_add" in play.names()


async def test_pages_without_an_origin_are_strangers_to_each_other_and_off() -> None:
    """A1: a sandboxed frame's origin is equal to nothing."""
    async with scene() as play:
        play.open(page_tool(), origin="null", frame="3")
        [tool] = [tool for tool in play.browser.tools() if tool.source]
        assert (tool.default_approval, tool.source) == ("off", "page:null in https://shop.example")
        assert room().origin == "https://shop.example"
