"""Plugins as folders: what is taken, what is refused and why, what is followed, and what is remembered."""

import json
import logging
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from afoot.errors import CallerError, ToolError
from afoot.providers.browser.plugins.plugin import EXTENSION, ManifestTool, PluginManifest, load_plugin
from afoot.providers.browser.plugins.plugin_folders import Plugins
from afoot.wire.browser_data import PageTool
from tests.docs.page import sections

ROOT = Path(__file__).parents[4]
NODE = ROOT / ".venv" / "bin" / "node"
MANIFEST: dict[str, Any] = {
    "name": "tea-shop",
    "version": "1.2.0",
    "displayName": "Tea shop",
    "description": "Orders tea.",
    "matches": ["https://tea.example/*"],
    "excludes": ["*://*/logout"],
    "homepage": "https://tea.example/orders",
    "readiness": "isLoggedIn",
    "files": ["first.js", "more/second.js"],
    "tools": [{"name": "order", "description": "Order tea.", "icon": "https://tea.example/cup.svg"}],
}
FIRST = 'const cups = 2;\nfunction isLoggedIn() { return document.cookie !== ""; }\n'
SECOND = 'defineTool({ name: "order", description: "Order tea.", handle: () => cups }); // no new line'


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder of its own."""
    monkeypatch.setenv("AFOOT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def write(folder: Path, **changes: Any) -> Path:
    """A plugin's folder; a key that is None is left out."""
    (folder / "more").mkdir(parents=True, exist_ok=True)
    manifest = {key: value for key, value in {**MANIFEST, **changes}.items() if value is not None}
    (folder / "plugin.json").write_text(json.dumps(manifest))
    (folder / "first.js").write_text(FIRST)
    (folder / "more" / "second.js").write_text(SECOND)
    return folder


def edit(file: Path, text: str) -> None:
    """Change a file, also for a clock that is coarse."""
    before = file.stat().st_mtime_ns
    file.write_text(text)
    os.utime(file, ns=(before + 1_000_000, before + 1_000_000))


def test_a_folder_is_a_plugin(tmp_path: Path) -> None:
    """B2: all that plugin.json says, and the tools it lists."""
    plugin = load_plugin(write(tmp_path / "tea"))
    assert (plugin.name, plugin.version, plugin.title) == ("tea-shop", "1.2.0", "Tea shop")
    assert plugin.source == f"plugin:tea-shop@{plugin.hash}" and len(plugin.hash) == 16
    assert plugin.start == "https://tea.example/orders"
    [tool] = plugin.tools
    assert (tool.name, bytes(tool.input_schema), tool.icon) == (
        "order", b'{"type":"object"}', "https://tea.example/cup.svg"
    )  # fmt: skip
    body = plugin.bundle()
    assert (body.matches, body.excludes) == (["https://tea.example/*"], ["*://*/logout"])
    assert (body.key, body.hash) == (plugin.key, plugin.hash)


def test_both_scripts_of_a_plugin_are_javascript(tmp_path: Path) -> None:
    """B2: SDK and files, each file seeing the names of those before it, whatever it ends with."""
    body = load_plugin(write(tmp_path / "tea")).bundle()
    for script in (body.body, body.files):
        (file := tmp_path / "script.js").write_text(script)
        subprocess.run([NODE, "--check", file], check=True, timeout=20)
    mark = f'globalThis[Symbol.for("dev.afoot.plugin.{body.hash}")]'
    use = f"{mark} = (run) => console.log(run(globalThis).ready.name, tool.handle());"
    offer = "globalThis.defineTool = (one) => (globalThis.tool = one);"
    program = f"globalThis.tool = null; {offer} {use}\n{body.files}"
    done = subprocess.run([NODE, "-e", program], capture_output=True, text=True, timeout=20, check=True)
    assert done.stdout == "isLoggedIn 2\n"


def test_the_same_code_has_the_same_hash_and_key_and_other_code_has_not(tmp_path: Path, home: Path) -> None:
    """B2, A4: new code is asked about again; a gateway that starts anew knows its rooms again."""
    one, two = load_plugin(write(tmp_path / "tea")), load_plugin(write(tmp_path / "again"))
    assert (one.hash, one.key) == (two.hash, two.key)
    others = [
        load_plugin(write(tmp_path / "a", version="1.2.1")),
        load_plugin(write(tmp_path / "b", matches=["https://*.tea.example/*"])),
        load_plugin(write(tmp_path / "c", readiness={"selector": "main"})),
    ]
    edit(write(tmp_path / "d") / "first.js", FIRST.replace("2", "3"))
    others.append(load_plugin(tmp_path / "d"))
    assert len({one.hash, *(other.hash for other in others)}) == 5
    (home / "key").unlink()
    assert load_plugin(tmp_path / "tea").hash == one.hash
    assert load_plugin(tmp_path / "tea").key != one.key


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"name": None}, "name: is missing"),
        ({"name": "Tea_Shop"}, "name: 'Tea_Shop' is no name"),
        ({"name": "a" * 33}, "is no name"),
        ({"name": "afoot"}, "name: 'afoot' is taken by the gateway"),
        ({"version": ""}, "version: write a version"),
        ({"matches": []}, "matches: names none"),
        ({"matches": ["<all_urls>"]}, "matches[0]: '<all_urls>' is too broad: name the site"),
        ({"matches": ["https://tea.example/*", "*://*/*"]}, "matches[1]: '*://*/*' is too broad"),
        ({"matches": ["tea.example"]}, "matches[0]: 'tea.example' is no match pattern"),
        ({"matches": [7]}, "matches[0]: expected `str`, got `int`"),
        ({"excludes": ["nothing"]}, "excludes[0]: 'nothing' is no match pattern"),
        ({"homepage": "javascript:alert(1)"}, "homepage: 'javascript:alert(1)' is no http"),
        ({"readiness": "is ready"}, "readiness: 'is ready' is no name of a function"),
        ({"readiness": {"selector": "p", "value": "a.b"}}, "readiness: name a selector or a value"),
        ({"readiness": {"script": "x"}}, "readiness.script: is no key"),
        ({"files": []}, "files: names none"),
        ({"files": ["none.js"]}, "files[0]: there is no file 'none.js'"),
        ({"files": ["first.js", "first.js"]}, "files[1]: 'first.js' is there twice"),
        ({"files": ["../outside.js"]}, "files[0]: '../outside.js' is not in the plugin's folder"),
        ({"files": ["/etc/hostname"]}, "files[0]: '/etc/hostname' is not in the plugin's folder"),
        ({"files": ["link.js"]}, "files[0]: 'link.js' is not in the plugin's folder"),
        ({"files": ["."]}, "files[0]: '.' is not in the plugin's folder"),
        ({"tools": [{"name": "a b"}]}, "tools[0].name: 'a b'"),
        ({"tools": [{"name": "a"}, {"name": "a"}]}, "tools[1].name: 'a' is there twice"),
        ({"tools": [{"name": "a", "input": {"type": "array"}}]}, "tools[0].input: must be the schema"),
        ({"color": "red"}, "color: is no key of plugin.json"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_wrong_is_named_with_its_file_and_key(
    tmp_path: Path, changes: dict[str, Any], told: str
) -> None:
    """B2, E4: nothing runs, and the text says what to mend."""
    (tmp_path / "outside.js").write_text("1;")
    folder = write(tmp_path / "tea", **changes)
    (folder / "link.js").symlink_to(tmp_path / "outside.js")
    with pytest.raises(CallerError) as error:
        load_plugin(folder)
    assert str(folder / "plugin.json") in str(error.value)
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"\xff\xfe", "is not UTF-8"),
        (b"import x from 'y';", "line 1: has an import: files are plain scripts"),
        (b"1;\nexport const a = 1;", "line 2: has an export"),
        (b"x" * 1_000_001, "is over 1 MB"),
    ],
    ids=["bytes", "import", "export", "long"],
)
def test_a_script_that_cannot_be_one_is_refused(tmp_path: Path, data: bytes, told: str) -> None:
    """B2, G3: with its name, and the line where there is one."""
    folder = write(tmp_path / "tea")
    (folder / "first.js").write_bytes(data)
    with pytest.raises(CallerError, match=told) as error:
        load_plugin(folder)
    assert "first.js" in str(error.value)


def test_words_that_only_look_like_imports_are_taken(tmp_path: Path) -> None:
    """B2: keys, comments and names."""
    folder = write(tmp_path / "tea")
    text = "const a = {\nimport: 1,\nexport: 2 };\nimportant();\n// import x\nexported = 1;\n"
    (folder / "first.js").write_text(text)
    load_plugin(folder)


def test_a_folder_of_over_five_megabytes_is_refused(tmp_path: Path) -> None:
    """G3: all files together."""
    names = [f"f{number}.js" for number in range(6)]
    folder = write(tmp_path / "tea", files=names)
    for name in names:
        (folder / name).write_text("/" * 900_000)
    with pytest.raises(CallerError, match="files: are over 5 MB in all"):
        load_plugin(folder)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"name": "\\ud800"}', "\ufeff{}"])
def test_a_plugin_json_that_is_none_says_so(tmp_path: Path, text: str) -> None:
    """E4: whatever it holds."""
    folder = write(tmp_path / "tea")
    (folder / "plugin.json").write_text(text, encoding="utf-8")
    with pytest.raises(CallerError, match=r"plugin\.json: "):
        load_plugin(folder)
    with pytest.raises(CallerError, match="cannot be read"):
        load_plugin(tmp_path / "nothing")


def test_changes_are_followed_and_a_broken_edit_keeps_the_old_code(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """B2: without a restart; what is wrong is said, and mended by the next edit."""
    folder = write(tmp_path / "tea")
    plugins = Plugins([folder])
    [first] = plugins.all
    assert not plugins.check_files()
    edit(folder / "first.js", FIRST.replace("2", "3"))
    assert [plugins.check_files(), plugins.check_files(), plugins.check_files()] == [False, True, False]
    [second] = plugins.all
    assert second.hash != first.hash
    edit(folder / "plugin.json", "{")
    assert [plugins.check_files(), plugins.check_files()] == [False, True]
    assert plugins.all == [second]
    [problem] = plugins.problems
    assert "is no JSON" in problem and f"the old code ({second.hash}) is kept" in problem
    assert [record.levelno for record in caplog.records] == [logging.WARNING, logging.ERROR]
    write(folder)
    assert [plugins.check_files(), plugins.check_files()] == [False, True]
    assert (plugins.all, plugins.problems) == ([first], [])


def test_a_plugin_that_is_wrong_from_the_start_is_taken_when_it_is_mended(tmp_path: Path) -> None:
    """B2: whichever of its files was the wrong one."""
    folder = write(tmp_path / "tea")
    (folder / "first.js").write_text("export const a = 1;")
    plugins = Plugins([folder])
    assert not plugins.all and len(plugins.problems) == 1
    edit(folder / "first.js", FIRST)
    assert [plugins.check_files(), plugins.check_files()] == [False, True]
    assert [one.name for one in plugins.all] == ["tea-shop"] and not plugins.problems


def test_folders_come_and_go(tmp_path: Path) -> None:
    """B2: the settings are followed; two plugins of one name are not both run."""
    one, two, three = write(tmp_path / "a"), write(tmp_path / "b"), write(tmp_path / "c", name="milk")
    plugins = Plugins()
    assert not plugins.set_folders([])
    assert plugins.set_folders([one, two, three])
    assert [plugin.folder for plugin in plugins.all] == [one, three]
    assert "name: 'tea-shop' is that of" in plugins.problems[0]
    assert plugins.set_folders([three]) and not plugins.problems
    assert [plugin.folder for plugin in plugins.all] == [three]


def test_tools_are_known_with_no_tab_open_once_they_were_seen(tmp_path: Path) -> None:
    """B2: kept for the same code, also over a restart; other code starts from what plugin.json lists."""
    folder = write(tmp_path / "tea")
    plugins = Plugins([folder])
    tools = [PageTool("order", title="Order"), PageTool("cancel")]
    plugins.store_tools(plugins.all[0].source, tools)
    plugins.store_tools("plugin:tea-shop@0000", [PageTool("other")])
    for again in (plugins, Plugins([folder])):
        assert [(tool.name, tool.title) for tool in again.all[0].tools] == [
            ("order", "Order"),
            ("cancel", ""),
        ]
    edit(folder / "first.js", FIRST + "1;")
    assert [tool.name for tool in Plugins([folder]).all[0].tools] == ["order"]


def test_a_plugin_json_that_lists_other_tools_than_the_code_has_is_a_problem(tmp_path: Path) -> None:
    """B2: what is listed with no tab open should be what there is."""
    plugins = Plugins([write(tmp_path / "tea")])
    source = plugins.all[0].source
    plugins.store_tools(source, [PageTool("cancel"), PageTool("pay")])
    [problem] = plugins.problems
    assert problem.endswith(
        "tools: lists order, which the code does not define and does not list cancel, pay"
    )
    plugins.store_tools(source, [PageTool("order")])
    assert not plugins.problems


def test_what_was_remembered_and_cannot_be_read_is_no_end(tmp_path: Path, home: Path) -> None:
    """E3: the plugin runs as if nothing had been seen."""
    plugins = Plugins([write(tmp_path / "tea")])
    home.mkdir(exist_ok=True)
    (home / "plugins.json").write_text("{")
    assert [tool.name for tool in plugins.all[0].tools] == ["order"]


def test_a_status_means_the_same_as_in_the_sdk() -> None:
    """E1: the vectors that the SDK is tested with."""
    for vector in json.loads((ROOT / "tests" / "vectors" / "http_status.json").read_text()):
        error = ToolError.from_status(vector["status"], "no")
        assert (error.category, error.retryable) == (vector["category"], vector["retryable"])


def test_every_key_and_every_name_has_a_heading() -> None:
    """House: the reference has everything that there is, and nothing else."""
    told = sections("docs/reference/plugin.md", 3)
    keys = {field.encode_name for field in msgspec.structs.fields(PluginManifest)}
    listed = json.loads((EXTENSION / "sdk" / "files.json").read_text())
    assert set(told) == {*keys, *listed["offered"]}
    for field in msgspec.structs.fields(ManifestTool):
        assert f"`{field.encode_name}`" in told["defineTool"].replace("`input`, `output`", "`input` `output`")
    for name in re.findall(r"static (\w+)\(", (EXTENSION / "sdk" / "errors.js").read_text()):
        assert f"`ToolError.{name}(" in told["ToolError"]
