"""The pages as a whole: where they stand, how long they are, and that what they name exists."""

import ast
import json
import os
import re
import struct
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from afoot.config import settings as config
from afoot.providers.functions.loading import load_file
from afoot.testing import Trial, run
from docs.screenshots import SCREENS, SHOWN, VIEWS
from tests.docs.page import DOCS, FOLDERS, ROOT, blocks, links, pages, prose, read, sections

DESIGN = "docs/design.md"
EXAMPLE = ROOT / "examples" / "afoot.toml"
ABOVE = {"docs/README.md", DESIGN, "docs/requirements.md", "docs/security.md"}


def test_every_page_is_in_one_of_four_folders_and_in_the_list() -> None:
    """House: tutorial, how-to, reference, reasons, never mixed; nothing is hidden."""
    listed = {f"docs/{link}" for link in links("docs/README.md")}
    found = {str(path.relative_to(ROOT)) for path in DOCS.rglob("*.md")}
    assert listed == found - {"docs/README.md"}
    assert {page.split("/")[1] for page in found - ABOVE} == set(FOLDERS)


@pytest.mark.parametrize("page", pages())
def test_every_link_leads_somewhere(page: str) -> None:
    """House: pages and headings."""
    for link in links(page):
        target, _, anchor = link.partition("#")
        if target.startswith("https:"):
            continue
        path = (ROOT / page).parent / target if target else ROOT / page
        assert path.is_file(), f"{page}: {link}"
        if anchor:
            assert anchor in _anchors(str(path.resolve().relative_to(ROOT))), f"{page}: {link}"


def _anchors(page: str) -> set[str]:
    titles = [title for level in range(1, 5) for title in sections(page, level)]
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_the_readme_puts_afoot_on_the_path_before_it_is_used() -> None:
    """House: a newcomer types the commands as they stand."""
    text = read("README.md")
    assert 0 < text.find('export PATH="$PWD/.venv/bin:$PATH"') < text.find("$ afoot ")


def test_a_fastmcp_server_runs_as_the_readme_says(tmp_path: Path) -> None:
    """F6: the file needs no change, and the first screen says so."""
    assert "`afoot serve server.py`" in "\n".join(read("README.md").splitlines()[:15])
    (tmp_path / "server.py").write_text(
        "from fastmcp import FastMCP\n\nmcp = FastMCP('sums')\n\n\n"
        "@mcp.tool\ndef add(a: int, b: int) -> int:\n    return a + b\n"
    )
    words = [sys.executable, "-m", "afoot", "call", "add", "a=1", "b=2", "--target", "server.py"]
    environment = {**os.environ, "AFOOT_HOME": str(tmp_path / "home")}
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "3"), done.stderr


def test_the_readme_is_short_and_has_a_picture() -> None:
    """House: at most 150 lines, one sentence, one picture of the real thing, two commands."""
    text = read("README.md")
    assert len(text.splitlines()) <= 150
    assert pictures("README.md")[0] == "docs/console.png"
    [two, *_] = [block for block in blocks("README.md") if block.language == "console"]
    assert re.findall(r"^\$ (\S+)", two.text, re.MULTILINE) == ["scripts/serve", "scripts/test"]


def pictures(page: str) -> list[str]:
    """The pictures of a page, each with words for who cannot see it."""
    return re.findall(r"!\[[^\]]+\]\(([^)]+)\)", prose(page))


@pytest.mark.parametrize("page", pages())
def test_every_picture_is_there_and_is_one(page: str) -> None:
    """House: a PNG that begins as one, or an SVG that says what it is."""
    for one in pictures(page):
        file = (ROOT / page).parent / one
        if file.suffix == ".svg":
            root = ElementTree.parse(file).getroot()
            named = root.get("aria-label") or root.findtext("{*}title")
            assert root.tag.endswith("svg") and named, one
        else:
            assert file.read_bytes().startswith(b"\x89PNG\r\n"), one


def test_every_view_of_the_console_has_its_pictures() -> None:
    """V1: light, dark, wide and as on a phone; small enough to be kept."""
    wanted = {f"{view}-{way}.png" for view in VIEWS for way in SHOWN}
    found = {file.name: file.read_bytes() for file in SCREENS.iterdir()}
    assert set(found) == wanted and sum(map(len, found.values())) < 4_500_000
    for name, picture in found.items():
        width, height = struct.unpack(">II", picture[16:24])
        wide = {"phone": 780, "wide": 1920}.get(name.removesuffix(".png").rpartition("-")[2], 1440)
        assert (width, height >= 800) == (wide, True), name


def test_the_tutorial_and_the_how_tos_have_code() -> None:
    """House: they are for doing; reasons are for reading."""
    for page in pages():
        if page.startswith(("docs/tutorial/", "docs/how-to/")):
            assert blocks(page), page
        if page.startswith("docs/reasons/"):
            assert not blocks(page), page


def test_the_changelog_has_its_form() -> None:
    """House: Keep a Changelog."""
    assert list(sections("CHANGELOG.md", 2)) == ["[0.1.0] - Unreleased"]
    known = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(sections("CHANGELOG.md", 3)) <= known


def test_every_file_and_function_in_the_design_exists() -> None:
    """House: the page is kept true."""
    for line in prose(DESIGN).splitlines():
        names: set[str] = set()
        for word in re.findall(r"`([^`]+)`", line):
            if re.fullmatch(r"(?:\w+/)+\w+\.py", word):
                file = next((base / word for base in _BASES if (base / word).is_file()), None)
                assert file is not None, f"{word} is no file"
                names = {*_functions(file)}
            elif names and re.fullmatch(r"[A-Z]\w*\.\w+|_?[a-z]+", word):
                assert word in names, f"{word} is not in the file before it"


_BASES = (ROOT / "src" / "afoot", ROOT)


def _functions(file: Path) -> Iterator[str]:
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.ClassDef):
            yield from (f"{node.name}.{one.name}" for one in node.body if isinstance(one, _FUNCTION))
        elif isinstance(node, _FUNCTION):
            yield node.name


_FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


def test_the_path_of_one_call_in_the_design_is_the_one_it_takes(tmp_path: Path) -> None:
    """House: a call crosses every function that the table names."""
    named = set(_path(sections(DESIGN, 2)["The path of one call"]))
    ran = subprocess.run(
        [sys.executable, "-m", "bench.figures.probe", "own", str(tmp_path)],
        capture_output=True, timeout=50, check=False, cwd=ROOT,
    )  # fmt: skip
    assert ran.stdout, ran.stderr.decode()
    crossed = {name.replace(":", " ") for name in json.loads(ran.stdout)["crossed"]}
    assert named <= crossed


def _path(text: str) -> Iterator[str]:
    """The functions that the table names, each behind its file."""
    file = ""
    for line in text.splitlines():
        for word in re.findall(r"`([^`]+)`", line) if line.startswith("| ") else ():
            file = word if word.endswith(".py") else file
            if file and word != file:
                yield f"{file} {word}"


def test_the_layers_are_those_that_are_checked() -> None:
    """House: the same order as import-linter's."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    [contract] = [one for one in project["tool"]["importlinter"]["contracts"] if one["type"] == "layers"]
    there = {path.stem for path in (ROOT / "src" / "afoot").iterdir()}
    wanted = [set(re.findall(r"\w+", layer)) & there for layer in contract["layers"]]
    quoted = "".join(line for line in read(DESIGN).splitlines() if line.startswith("> "))
    assert [set(re.findall(r"`(\w+)`", layer)) for layer in quoted.split("→")] == wanted


def test_every_dependency_has_its_reason() -> None:
    """House: few, each with a line."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    names = {re.split(r"[><=;\[ ]", one)[0] for one in project["project"]["dependencies"]}
    told = sections(DESIGN, 2)["Dependencies, each for one reason"]
    lines = [line.partition(":")[0] for line in told.splitlines() if line.startswith("- ")]
    assert {name for line in lines for name in re.findall(r"`([\w-]+)`", line)} == names


def test_the_examples_are_what_they_say() -> None:
    """House: the config is taken, and serves the tools beside it."""
    settings = config.load_settings(EXAMPLE).settings
    assert settings.targets == [str(EXAMPLE.with_name("tools.py"))] and set(settings.tools) <= set(
        _examples()
    )


def test_what_is_switched_off_in_the_example_is_taken_too(tmp_path: Path) -> None:
    """House: whoever takes away the signs of comment has settings that are right."""
    file = tmp_path / "afoot.toml"
    file.write_text(re.sub(r"^# (\[.+\]|\w+ = .+)$", r"\1", EXAMPLE.read_text(), flags=re.MULTILINE))
    now, before = config.load_settings(file).settings, config.load_settings(EXAMPLE).settings
    assert len(now.servers) == 3 and len(now.hooks) == 2 and len(now.tools) == len(before.tools) + 1
    assert [server.way() for server in now.servers.values()] == ["command", "url", "command"]


@pytest.mark.parametrize(
    ("tool", "arguments", "result"),
    [
        ("count", {"n": 3}, {"counted": 3}),
        ("book", {"city": "Rome"}, "booked Rome, first class"),
        ("story", {}, "A caller called.\nA tool set out.\nIt reported, and lived.\n"),
        ("thumbnails", {"files": 1}, "1 thumbnails"),
    ],
)
def test_every_example_runs(tool: str, arguments: dict[str, object], result: object) -> None:
    """House: on the fake clock."""
    assert set(_examples()) == {"count", "book", "story", "thumbnails"}
    trial = Trial(_examples()[tool], arguments, {"q1": {"value": "first"}})
    outcome = run(trial.run())
    assert (outcome.outcome, outcome.result) == ("ok", result)


def _examples() -> dict[str, Callable[..., Any]]:
    return {tool.__name__: tool for tool in load_file(ROOT / "examples" / "tools.py").tools}
