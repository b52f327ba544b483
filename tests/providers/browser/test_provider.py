"""The provider of browser tools: what is offered of pages and plugins, who is asked, and what is shown."""

import pytest
from msgspec import Raw, json

from afoot.config.settings import ToolSettings
from afoot.config.tables import BrowserSettings
from afoot.core.facts import Limits
from afoot.core.ports import Tool
from afoot.engine.catalog import EffectiveSettings
from afoot.errors import AlreadyAnswered, Refused
from afoot.wire.browser_data import PageTool
from afoot.wire.extension import (
    PageContextGone,
    PageContextOpened,
    PageContextReady,
    PageContextTools,
    PluginSync,
    RunDispatch,
)
from tests.engine.approval.reviewers import asked, says
from tests.providers.browser.fake_browser import (
    SHOP,
    Scene,
    message,
    page_tool,
    pause,
    plugin,
    room,
    scene,
    text,
)

HAS_FAKE_CLOCK = True
ADD = "shop_example_add"


def opened(play: Scene, source: str, room_id: str = "p1", *tools: PageTool) -> None:
    """A plugin's room is open, and ready."""
    play.tell(PageContextOpened(room(room_id, source=source)))
    play.tell(PageContextTools(room_id, list(tools)))
    play.tell(PageContextReady(room_id, True))


def only(play: Scene) -> Tool:
    """The one tool of a page."""
    [found] = [tool for tool in play.listed() if tool.source]
    return found


async def test_a_tool_is_offered_with_its_source_and_said_to_be_unchecked() -> None:
    """B3, B7: the model is told whose words it reads; annotations are passed on and lower nothing."""
    async with scene(EffectiveSettings()) as play:
        hints = Raw(b'{"readOnlyHint": true, "consequentialHint": true, "debugging": true}')
        play.open(page_tool(annotations=hints, title="Add it", icon="https://shop.example/i.png"))
        found = only(play)
        told = json.decode(found.definition)
        assert told["description"].startswith(
            f"From the page {SHOP}, in its own words, which nobody has checked: "
        )
        assert told["annotations"] == {"readOnlyHint": True, "consequentialHint": True}
        assert (told["title"], told["icons"]) == ("Add it", [{"src": "https://shop.example/i.png"}])
        assert told["inputSchema"]["type"] == "object" and "afoot_tab" in told["inputSchema"]["properties"]
        assert (found.server, found.source, found.address) == ("browser", f"page:{SHOP}", f"{SHOP}/add")
        assert (found.trusted, found.destructive, found.approval) == (False, True, "ask")


async def test_tools_without_progress_and_forms_say_so() -> None:
    """B3: tools that were there before the shim are marked."""
    async with scene() as play:
        play.open(page_tool(progress=False, form=True))
        words = json.decode(only(play).definition)["description"]
        assert words.endswith("Does add. It reports no progress. A person must send a form in the tab.")


async def test_at_most_so_many_tools_of_an_origin_are_listed_and_the_rest_is_shown() -> None:
    """B2: a page with 500 tools; the setting is followed."""
    async with scene(tools_per_origin=3) as play:
        play.open(*(page_tool(f"tool{number}") for number in range(500)))
        assert len(play.names()) == 3
        [view] = play.browser.tab_views()
        assert (view.tools, view.left_out, view.state) == (3, 497, "ready")
        play.browser.configure(Limits(), BrowserSettings(tools_per_origin=5))
        assert len(play.names()) == 5


async def test_the_same_name_twice_in_one_page_is_two_definitions_or_one() -> None:
    """B2: bad days."""
    async with scene() as play:
        play.open(page_tool(), page_tool(), page_tool(schema={"properties": {"a": {}}}))
        assert len(play.names()) == 2


async def test_a_page_s_tool_is_asked_about_and_what_is_allowed_is_this_page_s() -> None:
    """A1, A2: always allow a server means this source, not all pages."""
    async with scene(EffectiveSettings()) as play:
        play.engine.policy.seen = play.engine.clock.now()
        play.open(page_tool(), page_tool("pay"), room_id="r1")
        play.open(
            page_tool(), room_id="r2", tab="8", origin="https://evil.example", top="https://evil.example"
        )
        live = play.submit(ADD)
        question = await asked(live)
        play.engine.answer(question, says("always", "operator", scope="server", for_="ever"))
        await pause(20)
        [allowed] = play.engine.policy.entries
        assert set(allowed.definitions) == {ADD, "shop_example_pay"} and allowed.source == f"page:{SHOP}"
        assert play.submit("shop_example_pay").call.opened.approval == "allowlist"
        assert play.submit("evil_example_add").call.opened.approval == "ask"


async def test_a_tool_that_changes_its_words_is_asked_about_again() -> None:
    """A4: bound to its definition, and to its source."""
    async with scene(EffectiveSettings()) as play:
        play.engine.policy.seen = play.engine.clock.now()
        play.open(page_tool())
        play.engine.answer(await asked(play.submit(ADD)), says("always", "operator", for_="ever"))
        await pause(20)
        assert play.submit(ADD).call.opened.approval == "allowlist"
        play.tell(PageContextTools("r1", [PageTool("add", description="Does something else.")]))
        assert play.submit(ADD).call.opened.approval == "ask"


async def test_a_page_that_changes_its_tool_under_an_open_approval_is_asked_about_again() -> None:
    """A7: a yes to the words that the page had before runs nothing; one to the new words runs it."""
    async with scene(EffectiveSettings()) as play:
        play.engine.policy.seen = play.engine.clock.now()
        play.open(page_tool())
        live = play.submit(ADD)
        first = await asked(live)
        play.tell(PageContextTools("r1", [PageTool("add", description="Does something else.")]))
        await pause()
        with pytest.raises(AlreadyAnswered):
            play.engine.answer(first, says("run", "operator"))
        second = await asked(live)
        assert second != first and play.puppet.got(RunDispatch) == []
        play.engine.answer(second, says("run", "operator"))
        await pause(20)
        [sent] = play.puppet.got(RunDispatch)
        play.end(sent, {"ok": True})
        assert (await play.ended(live)).outcome == "ok"


async def test_a_tool_in_a_strange_frame_is_off_until_its_origin_is_set() -> None:
    """A1: invisible and refused; on, it is another tool than that of the page itself."""
    async with scene(EffectiveSettings()) as play:
        play.open(page_tool(), frame="4", top="https://news.example")
        [off] = [tool for tool in play.browser.tools() if tool.source]
        assert play.names() == []
        with pytest.raises(Refused, match="switched off"):
            play.submit(off.name)
        play.engine.catalog.effective_settings = EffectiveSettings(
            {f"{SHOP}/*": ToolSettings(approval="auto")}
        )
        assert play.names() == [off.name] and off.name.startswith(f"{ADD}_")


async def test_a_plugin_s_tools_are_listed_with_no_tab_open_and_say_which_to_open() -> None:
    """B2: from what is known of its code."""
    async with scene() as play:
        play.browser.set_plugins([plugin("h1", page_tool("save"))])
        assert play.names() == ["notes_save"]
        assert play.puppet.got(PluginSync)[-1].plugins[0].name == "notes"
        end = await play.ended(play.submit("notes_save"))
        assert end.failure is not None and end.failure.code == "no_tab"
        assert f"open {SHOP}/*, then call it again" in message(end)
        assert [(one.state, one.why) for one in play.browser.plugin_views()] == [("closed", f"open {SHOP}/*")]


async def test_a_plugin_runs_where_it_is_ready_and_its_new_code_is_new_to_everybody() -> None:
    """B2, A4: rooms of the old code are offered no more, finish what they run, and the digest is another."""
    async with scene() as play:
        play.browser.set_plugins([plugin("h1")])
        opened(play, "plugin:notes@h1", "p1", page_tool("save"))
        before = only(play)
        live, sent = await play.call("notes_save")
        play.browser.set_plugins([plugin("h2")])
        assert play.names() == []
        opened(play, "plugin:notes@h2", "p2", page_tool("save"))
        after = only(play)
        assert (after.name, after.source) == (
            "notes_save",
            "plugin:notes@h2",
        ) and after.digest != before.digest
        play.end(sent, "old code")
        assert text(await play.ended(live)) == "old code"
        assert (await play.call("notes_save"))[1].room == "p2"


async def test_a_page_cannot_stand_in_for_a_plugin() -> None:
    """B2, B7: whatever it calls itself, its tools are the page's; unknown plugins offer nothing."""
    async with scene() as play:
        play.browser.set_plugins([plugin("h1", page_tool("save"))])
        play.open(page_tool("save"), origin="https://notes", top="https://notes")
        opened(play, "plugin:notes@forged", "p9", page_tool("save"))
        plain, marked = play.names()
        assert (plain, marked.startswith("notes_save_")) == ("notes_save", True)
        sources = {tool.name: tool.source for tool in play.listed() if tool.source}
        assert sources == {"notes_save": "plugin:notes@h1", marked: "page:https://notes"}


async def test_the_tools_that_a_plugin_was_seen_to_have_are_told_and_stay() -> None:
    """B2: also when its tab is closed."""
    async with scene() as play:
        told: list[tuple[str, list[PageTool]]] = []
        play.browser.on_plugin_tools = lambda source, tools: told.append((source, tools))
        play.browser.set_plugins([plugin()])
        opened(play, "plugin:notes@h1", "p1", page_tool("save"))
        play.tell(PageContextGone("p1", "closed"))
        assert play.names() == ["notes_save"]
        assert [(source, len(tools)) for source, tools in told] == [("plugin:notes@h1", 1)]


async def test_a_result_must_fit_what_the_tool_says_that_it_returns() -> None:
    """G3: hosts rely on an outputSchema."""
    schema = Raw(b'{"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}')
    async with scene() as play:
        play.open(page_tool(output_schema=schema))
        live, sent = await play.call(ADD)
        play.end(sent, {"id": 3})
        assert text(await play.ended(live)) == '{"id":3}'
        live, sent = await play.call(ADD)
        play.end(sent, {"id": "three"})
        end = await play.ended(live)
        assert end.failure is not None and end.failure.code == "bad_result"
