"""Tools from modules and files."""

import importlib
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from afoot.errors import BadTool, CallerError
from afoot.providers.functions.loading import load_file, tools_in
from afoot.providers.functions.tool import FunctionProvider
from tests.providers.fake_run import call, text_of

SOURCE = """
from __future__ import annotations
from afoot.providers.functions.tool import tool
from helper_of_this import WORD

@tool
def second(n: Later) -> str:
    return WORD

@tool(name="first")
async def other() -> str:
    return WORD

def no_tool(): ...

class Later(int): ...
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    before = list(sys.path)
    (tmp_path / "helper_of_this.py").write_text("WORD = 'one'")
    (tmp_path / "tools.py").write_text(
        SOURCE.replace("Later(int)", "Later(__import__('pydantic').BaseModel)")
    )
    yield tmp_path
    sys.path[:] = before
    for name in [name for name in sys.modules if name.startswith(("afoot_file_", "helper_of_this"))]:
        del sys.modules[name]


def test_a_file_offers_every_tool_in_it(folder: Path) -> None:
    """C8: in order; annotations may name what comes later; helpers of its folder can be imported."""
    provider = FunctionProvider(load_file(folder / "tools.py").tools)
    assert [offer.name for offer in provider.tools()] == ["second", "first"]


async def test_a_file_is_read_afresh_and_so_are_its_helpers(folder: Path) -> None:
    """C8: reload; whoever holds the old functions keeps the old code."""
    old = load_file(folder / "tools.py").tools[1]
    (folder / "helper_of_this.py").write_text("WORD = 'two'")
    shutil.rmtree(folder / "__pycache__", ignore_errors=True)
    new = load_file(folder / "tools.py").tools[1]
    assert [text_of(await call(function)) for function in (old, new)] == ["one", "two"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("\n\n1/0", r"bad\.py, line 3: ZeroDivisionError"),
        ("def f(:", r"bad\.py, line 1: SyntaxError"),
        ("import sys\nsys.exit(2)", r"bad\.py, line 2: SystemExit: 2"),
        ("x = 1", "no tools in"),
        ("import no_such_module", r"No module named 'no_such_module' \(install it for .*python"),
        ("import sys\nraise ValueError(sys.argv)", r"ValueError: \['[^']*bad\.py'\]"),
        (
            "import afoot\none, two = afoot.App(), afoot.App()\n@afoot.tool\ndef f(): ...",
            r"bad\.py has several apps \(one, two\): keep one",
        ),
        ("import afoot\n\nafoot.App(lifespan=1)", r"bad\.py, line 3: TypeError: lifespan must be a function"),
        (
            "from afoot.providers.functions.tool import tool\n@tool(name='a b')\ndef f(): ...",
            r"bad\.py:2: 'a b' is no tool name",
        ),
    ],
    ids=["raises", "syntax", "exits", "empty", "not installed", "its arguments", "apps", "lifespan", "name"],
)
def test_what_is_wrong_with_a_file_is_said_with_its_line(folder: Path, source: str, message: str) -> None:
    """E4: file and line."""
    (folder / "bad.py").write_text(source)
    with pytest.raises(CallerError, match=message):
        load_file(folder / "bad.py")


def test_a_file_may_have_one_app_also_an_imported_one(folder: Path) -> None:
    """F2: two names of one app are one app."""
    (folder / "helper_of_this.py").write_text("import afoot\nshared = afoot.App()")
    (folder / "tools.py").write_text(
        "import afoot\nfrom helper_of_this import shared\napp = shared\n@afoot.tool\ndef f(): ..."
    )
    loaded = load_file(folder / "tools.py")
    assert loaded.app is sys.modules["helper_of_this"].shared


TWICE = """
import afoot

@afoot.tool
def look(n: int) -> int:
    return n

{decorator}
def look(n: int) -> str:
    return "another"
"""


@pytest.mark.parametrize("decorator", ["@afoot.tool", "@afoot.tool(name='other')", "@afoot.prompt"])
def test_a_tool_that_a_later_function_would_replace_is_said(folder: Path, decorator: str) -> None:
    """C8: Python would drop the first one without a word. Both lines are named."""
    (folder / "twice.py").write_text(TWICE.replace("{decorator}", decorator))
    with pytest.raises(BadTool, match=r"twice\.py:\d+.*second time.*twice\.py:\d+"):
        load_file(folder / "twice.py")


def test_a_module_that_is_reloaded_defines_its_tools_again(folder: Path) -> None:
    """C8: as a developer does in a shell."""
    (folder / "helper_of_this.py").write_text(
        "import afoot\n\n@afoot.tool\ndef look() -> int:\n    return 1\n"
    )
    sys.path.insert(0, str(folder))
    module = importlib.import_module("helper_of_this")
    (folder / "helper_of_this.py").write_text(
        "import afoot\n\n\n@afoot.tool\ndef look() -> int:\n    return 22\n"
    )
    shutil.rmtree(folder / "__pycache__", ignore_errors=True)
    assert tools_in(importlib.reload(module))[0]() == 22


def test_a_file_that_is_not_there_is_said() -> None:
    """E4: by its name."""
    with pytest.raises(CallerError, match=r"nowhere\.py: No such file"):
        load_file("nowhere.py")


def test_a_module_without_tools_offers_none() -> None:
    """C8: no error; whoever loads it decides."""
    assert tools_in(sys) == []
