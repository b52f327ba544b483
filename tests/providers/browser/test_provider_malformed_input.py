"""Browsers on odd days: half characters, endless schemas, names that pretend, plugins that cannot be read."""

import json as json_module
import os
from pathlib import Path

import pytest
from msgspec import Raw, json

from afoot.config.state_folder import StoredList
from afoot.config.tables import ToolSettings
from afoot.engine.catalog import EffectiveSettings
from afoot.errors import CallerError
from afoot.providers.browser import extension_files
from afoot.providers.browser.plugins.plugin_folders import Plugins
from afoot.wire.browser_data import PageReport, PageTool
from afoot.wire.extension import LinkHello, RunProgress, RunResult, read_frame
from tests.providers.browser.fake_browser import message, page_tool, plugin, scene, text

HAS_FAKE_CLOCK = True
ADD = "shop_example_add"
MANIFEST = {"name": "notes", "version": "1", "matches": ["https://shop.example/*"], "files": ["a.js"]}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder of the test's own, beside its other files."""
    monkeypatch.setenv("AFOOT_HOME", str(tmp_path.parent / f"{tmp_path.name}-home"))
    return tmp_path


def frame(method: str, params: str) -> str:
    """A frame as a browser writes it."""
    return f'{{"jsonrpc": "2.0", "method": "{method}", "params": {params}}}'


@pytest.mark.parametrize("half", [r"\ud83d", r"\ude00", r"\uD83D\\ude00", r"a\\\ud800", r"\udfff\ud800"])
def test_half_a_character_is_replaced_wherever_it_stands(half: str) -> None:
    """B1, B7: a page may cut a text between the halves of a pair; its frame counts all the same."""
    hello = read_frame(frame("link.hello", f'{{"version": "1", "profile": "p", "label": "{half}"}}'))
    assert isinstance(hello, LinkHello)
    assert hello.label == json_module.loads(f'"{half}"').encode("utf-16", "surrogatepass").decode(
        "utf-16", "replace"
    )


def test_whole_characters_and_escaped_backslashes_stay_as_they_are() -> None:
    """B1: mending half a character changes nothing else of the frame."""
    said = r'{"room": "r", "run": "x", "seq": 1, "value": ["\ud83d\ude00", "\\ud83d", "\ud83d", "\\\\"]}'
    ended = read_frame(frame("tool.result", said))
    assert isinstance(ended, RunResult)
    assert json.decode(ended.value) == ["\U0001f600", "\\ud83d", "\ufffd", "\\\\"]


@pytest.mark.parametrize("end", ['"value": "\\ud83d"', '"error": {"message": "\\ud83d"}'])
async def test_a_run_whose_end_holds_half_a_character_ends(end: str) -> None:
    """B6: it ends when the page ends it, and not at a limit."""
    async with scene() as play:
        play.open(page_tool())
        live, sent = await play.call(ADD)
        play.tell(
            read_frame(
                frame("tool.result", f'{{"room": "{sent.room}", "run": "{sent.run}", "seq": 1, {end}}}')
            )
        )
        finished = await play.ended(live)
        said = text(finished) if finished.outcome == "ok" else message(finished)
        assert (said, finished.at - live.call.opened.at < 1) == ("\ufffd", True)


async def test_numbers_without_end_are_counted_and_can_be_shown() -> None:
    """B7, P4: whatever a page says of how much it left out, the counts can be read."""
    async with scene() as play:
        play.open(page_tool())
        _, sent = await play.call(ADD)
        said = (
            f'{{"room": "{sent.room}", "run": "{sent.run}", "seq": 1, "reports": [], "dropped": {"9" * 100}}}'
        )
        progressed = read_frame(frame("tool.progress", said))
        assert isinstance(progressed, RunProgress)
        play.tell(progressed)
        assert json.decode(json.encode(play.browser.counted)) == {"reports left out by pages": int("9" * 100)}


async def test_a_flood_of_large_data_fills_no_history() -> None:
    """B6, P4: data over the rate is left out, whatever the page does; the numbers beside it count."""
    async with scene() as play:
        play.open(page_tool())
        live, sent = await play.call(ADD)
        data = Raw(b'"' + b"x" * 60_000 + b'"')
        for seq in range(1, 1001):
            play.progress(sent, seq, PageReport(seq, data=data))
        play.end(sent, "done", seq=1001)
        await play.ended(live)
        assert live.call.contents < 50
        assert play.browser.counted == {"data over the rate": 1000 - live.call.contents}
        assert live.call.latest is not None and live.call.latest.progress == 1000


@pytest.mark.parametrize(
    ("origin", "top", "name"),
    [
        ("https://evil.test", "https://evil.test", "x.shop.example/pay"),
        ("https://evil.test", "https://evil.test", "x.shop.example"),
        ("null", "https://evil.test", "x://shop.example/pay"),
    ],
)
async def test_a_name_that_looks_like_another_origin_trusts_nobody(origin: str, top: str, name: str) -> None:
    """A1, B7: the stars of a pattern for origins do not reach into the names that pages choose."""
    patterns = ("https://*.shop.example/*", "*://shop.example/*", "https://*.shop.example*")
    terms = EffectiveSettings({one: ToolSettings(approval="auto") for one in patterns})
    async with scene(terms=terms) as play:
        play.open(page_tool(name), origin=origin, top=top)
        assert [tool.approval for tool in play.listed() if tool.source] in (["ask"], [])
        play.open(
            page_tool(name), room_id="r2", origin="https://a.shop.example", top="https://a.shop.example"
        )
        assert "auto" in [tool.approval for tool in play.listed() if tool.source]


async def test_a_pattern_of_an_origin_alone_means_all_its_tools() -> None:
    """A1: and those of no other origin."""
    async with scene(terms=EffectiveSettings({"https://shop.ex*": ToolSettings(approval="auto")})) as play:
        play.open(page_tool("a/b"))
        play.open(page_tool(), room_id="r2", origin="https://evil.test", top="https://evil.test")
        assert {tool.name: tool.approval for tool in play.listed() if tool.source} == {
            "shop_example_a_b": "auto",
            "evil_test_add": "ask",
        }


@pytest.mark.parametrize(("depth", "offered"), [(30, [ADD]), (40, []), (400, [])])
async def test_a_schema_that_is_nested_too_deep_spoils_no_list(depth: int, offered: list[str]) -> None:
    """B3: hosts cannot read a list of tools with it, so that tool alone is left out, and counted."""
    deep = b'{"properties":{"a":' * depth + b"{}" + b"}}" * depth
    async with scene() as play:
        play.open(PageTool("add", input_schema=Raw(deep)), page_tool("other"))
        assert play.names() == [*offered, "shop_example_other"]
        assert play.browser.counted == ({} if offered else {"tools that cannot be offered": 1})


def bomb(levels: int) -> dict[str, object]:
    """A small schema whose parts refer to each other so often that no check of it ends."""
    parts: dict[str, object] = {
        f"p{n}": {"anyOf": [{"$ref": f"#/$defs/p{n + 1}"}] * 20} for n in range(levels)
    }
    return {"anyOf": [{"$ref": "#/$defs/p0"}], "$defs": {**parts, f"p{levels}": {"not": {}}}}


CIRCLE = {"properties": {"a": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}}}


@pytest.mark.parametrize(
    "schema",
    [bomb(12), CIRCLE, {"$dynamicRef": "#x"}, {"$ref": "https://evil.test/"}, {"$ref": "#/no/where"}],
)
async def test_a_schema_that_nobody_could_check_is_left_to_its_page(schema: dict[str, object]) -> None:
    """E4, B7: a page cannot stop the gateway by what it says that it takes, or gives back."""
    async with scene() as play:
        play.open(
            PageTool("add", input_schema=Raw(json.encode(schema)), output_schema=Raw(json.encode(schema)))
        )
        deep: object = {}
        for _ in range(60):
            deep = {"a": deep, "b": 1}
        live, sent = await play.call(ADD, {"a": deep})
        play.end(sent, {"a": deep})
        assert (await play.ended(live)).outcome == "ok"


async def test_a_schema_with_references_is_checked() -> None:
    """E4: if they come to an end."""
    schema = {"properties": {"n": {"$ref": "#/$defs/a~1b"}}, "$defs": {"a/b": {"type": "integer"}}}
    async with scene() as play:
        play.open(page_tool("add", schema))
        assert "arguments.n" in message(await play.ended(play.submit(ADD, {"n": "x"})))


async def test_a_schema_that_refers_to_itself_once_is_checked() -> None:
    """E4: as that of a tree is, at every level."""
    schema = {"properties": {"n": {"type": "integer"}, "below": {"$ref": "#"}}}
    async with scene() as play:
        play.open(page_tool("add", schema))
        wrong = await play.ended(play.submit(ADD, {"n": 1, "below": {"n": 2, "below": {"n": "x"}}}))
        assert "arguments.below.below.n" in message(wrong)


async def test_a_tool_of_a_plugin_that_cannot_be_offered_is_counted_once() -> None:
    """B2: however often the list is made anew."""
    async with scene() as play:
        play.browser.set_plugins([plugin("h1", page_tool("add", {"type": "array"}), page_tool("other"))])
        for number in range(3):
            play.open(page_tool(), room_id=f"r{number}")
        assert play.names() == ["notes_other", ADD]
        assert play.browser.counted == {"tools that cannot be offered": 1}


async def test_what_was_seen_of_code_that_is_gone_is_forgotten() -> None:
    """B2: whoever saves a file all day fills no memory."""
    async with scene() as play:
        for number in range(20):
            play.browser.set_plugins([plugin(f"h{number}")])
            play.open(page_tool(), room_id=f"r{number}", source=f"plugin:notes@h{number}")
        assert len(play.browser._plugin_drafts) == 1
        assert len(play.names()) == 1


@pytest.mark.parametrize("name", ["a\0.js", "x" * 300, "loop.js"])
def test_a_file_name_that_no_disk_takes_is_a_problem_of_its_plugin(tmp_path: Path, name: str) -> None:
    """B2: the gateway goes on, and says which file it is."""
    os.symlink("loop.js", tmp_path / "loop.js")
    (tmp_path / "plugin.json").write_text(json_module.dumps({**MANIFEST, "files": [name]}))
    assert [one.split(" ")[1:2] for one in Plugins([tmp_path]).problems] == [["files[0]:"]]


def test_a_plugin_json_without_end_is_a_problem_of_its_plugin(tmp_path: Path) -> None:
    """B2: it is named, and nothing else suffers."""
    (tmp_path / "plugin.json").write_bytes(b'{"tools": [{"input": ' + b'{"a":' * 5000)
    assert len(Plugins([tmp_path]).problems) == 1


def test_tools_that_cannot_be_remembered_are_known_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B2, P3: a state folder that cannot be written costs a line in the log, not the browser's link."""
    (tmp_path / "plugin.json").write_text(json_module.dumps(MANIFEST))
    (tmp_path / "a.js").write_text("1")
    plugins = Plugins([tmp_path])
    broken = tmp_path / "broken"
    broken.write_text("no folder")
    monkeypatch.setattr(plugins._file, "_file", broken / "plugins.json")
    plugins.store_tools(plugins.all[0].source, [PageTool("add")])


@pytest.mark.parametrize("odd", [b'{"version": "1", "key": "\xff"}', b'{"version": "1", "a":' + b"[" * 5000])
def test_a_folder_whose_manifest_cannot_be_read_is_no_copy(tmp_path: Path, odd: bytes) -> None:
    """B7: a gateway that looks for its copies at its start goes on."""
    (tmp_path / "manifest.json").write_bytes(odd)
    assert not extension_files.is_copy(tmp_path)
    with pytest.raises(CallerError, match="not empty"):
        extension_files.copy_extension(tmp_path)


def test_a_folder_with_a_pipe_for_a_manifest_is_not_waited_for(tmp_path: Path) -> None:
    """B7: opening it never blocks."""
    os.mkfifo(tmp_path / "manifest.json")
    assert not extension_files.is_copy(tmp_path)


def test_a_list_in_the_state_folder_that_is_no_text_is_named() -> None:
    """B7: as one that is no JSON."""
    kept = StoredList("browser.json", extension_files.ExtensionCopy)
    kept._file.parent.mkdir(parents=True, exist_ok=True)
    kept._file.write_bytes(b'[{"folder": "\xff"}]')
    with pytest.raises(CallerError, match="cannot be read"):
        kept.read()


def test_a_version_without_end_comes_before_all() -> None:
    """B7: whatever an extension says, it is compared."""
    assert extension_files.is_older("9" * 5000, "0.1")


def test_a_plugin_gets_its_name_when_the_other_one_gives_it_up(tmp_path: Path) -> None:
    """B2: nobody has to touch the folder that waited."""
    folders = [tmp_path / "one", tmp_path / "two"]
    for one in folders:
        one.mkdir()
        (one / "a.js").write_text("1")
        (one / "plugin.json").write_text(json_module.dumps(MANIFEST))
    plugins = Plugins(folders)
    assert (len(plugins.all), len(plugins.problems)) == (1, 1)
    (folders[0] / "plugin.json").write_text(json_module.dumps({**MANIFEST, "name": "other"}))
    assert [plugins.check_files() for _ in range(2)] == [False, True]
    assert ([one.name for one in plugins.all], plugins.problems) == (["other", "notes"], [])
    (folders[1] / "plugin.json").write_text(json_module.dumps({**MANIFEST, "name": "other"}))
    assert [plugins.check_files() for _ in range(2)] == [False, True]
    assert plugins.set_folders(folders[1:])
    assert ([one.name for one in plugins.all], plugins.problems) == (["other"], [])
