"""`afoot serve` and `call --target` with what cannot be served: one line, exit 2, and nothing stays."""

import socket
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import LIMIT_S, program
from tests.docs.page import ROOT

GOOD = "import afoot\n@afoot.tool\ndef f() -> str:\n    'F.'\n    return 'f'\n"
WRONG = {
    "star.py": ("@afoot.tool\ndef f(*rest): 'F.'\n", "tool f (", "star.py:2)", "name each parameter"),
    "strange.py": (
        "import socket\n@afoot.tool\ndef f(a: int, line: socket.socket): 'F.'\n",
        "tool f (", "strange.py:3)", "parameter line has a type that JSON cannot give (socket.socket); take",
    ),
    "callable.py": (
        "from collections.abc import Callable\n@afoot.tool\ndef f(then: Callable[[], int]): 'F.'\n",
        "tool f (", "callable.py:3)", "parameter then has a type that JSON cannot give",
    ),
    "twice.py": (
        "@afoot.tool\ndef f(): 'F.'\n@afoot.tool(name='f')\ndef g(): 'G.'\n",
        "two tools are named f", "twice.py:2 and", "give one another name",
    ),
    "typo.py": ("@afoot.tool(destructve=True)\ndef f(): 'F.'\n", "tool f (", "typo.py:2)", "'destructive'"),
    "unresolved.py": (
        "import socket\n@afoot.tool\ndef f(a: 'socket.Nothing'): 'F.'\n",
        "tool f (", "unresolved.py:3)", "cannot be resolved",
    ),
}  # fmt: skip


@pytest.mark.parametrize("file", WRONG)
def test_a_tool_that_cannot_be_offered_is_one_clear_line(
    lone: dict[str, str], tmp_path: Path, file: str
) -> None:
    """E4, V2: file, function and what to do; as a file, as a module, and right here."""
    source, *said = WRONG[file]
    (tmp_path / file).write_text(f"import afoot\n{source}")
    for words in (
        ("serve", file, "--http", "127.0.0.1:0", "--store", "x.db"),
        ("serve", file.removesuffix(".py"), "--http", "127.0.0.1:0", "--store", "x.db"),
        ("call", "--target", file, "f"),
    ):
        done = program(words, lone, tmp_path)
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done
        assert all(word.removesuffix(".py") in done.stderr for word in said), done.stderr
    assert not list(tmp_path.glob("x.db*"))


def test_a_module_that_crashes_is_told_with_its_own_line(lone: dict[str, str], tmp_path: Path) -> None:
    """E4: not where the import system, or the library it called, is."""
    (tmp_path / "crash.py").write_text("import json\n\njson.loads('{')\n")
    done = program(("serve", "crash", "--http", "127.0.0.1:0"), lone, tmp_path)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert f"cannot load {tmp_path / 'crash.py'}, line 3: JSONDecodeError" in done.stderr


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (".", "this is a folder"),
        ("/", "this is a folder"),
        ("", "this is no name of a module"),
        ("notes.md", "this is no Python file"),
        ("a-b", "this is no name of a module"),
    ],
)
def test_a_target_that_is_nothing_is_told(
    lone: dict[str, str], tmp_path: Path, target: str, said: str
) -> None:
    """V2: one line, with what to name instead."""
    (tmp_path / "notes.md").write_text("notes")
    done = program(("serve", target, "--http", "127.0.0.1:0"), lone, tmp_path)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done
    assert repr(target) in done.stderr and said in done.stderr and "(.py)" in done.stderr


@pytest.mark.parametrize(
    ("store", "said"),
    [(".", "this is a folder"), ("/", "this is a folder"), ("notes.md", "no SQLite file")],
)
def test_a_store_that_cannot_be_is_told_and_no_lock_stays(
    lone: dict[str, str], tmp_path: Path, store: str, said: str
) -> None:
    """V2, H1: nothing is left beside somebody's file."""
    (tmp_path / "notes.md").write_text("no database at all " * 100)
    (tmp_path / "good.py").write_text(GOOD)
    done = program(("serve", "good.py", "--http", "127.0.0.1:0", "--store", store), lone, tmp_path)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done
    assert said in done.stderr and "--store" in done.stderr
    assert not list(tmp_path.rglob("*.lock")) and not tmp_path.with_name(f"{tmp_path.name}.lock").exists()
    assert (tmp_path / "notes.md").read_text().startswith("no database")


def test_a_port_that_is_taken_names_the_option(lone: dict[str, str], tmp_path: Path) -> None:
    """V2: what to type; and no history stays of what never served."""
    (tmp_path / "good.py").write_text(GOOD)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = program(("serve", "good.py", "--http", address, "--store", "x.db"), lone, tmp_path)
    assert done.returncode == 2 and "--http 127.0.0.1:0" in done.stderr, done
    assert not list(tmp_path.glob("x.db*"))


@pytest.mark.parametrize(
    ("words", "served"),
    [
        ((), True),
        (("--http", "127.0.0.1:0"), True),
        (("--http=127.0.0.1:0", "--json"), True),
        (("--store", "good.py", "--reload"), True),
        (("good.py", "--json"), False),
        (("--json", "good.py"), False),
        (("",), False),
        (("--config", "afoot.toml"), False),
    ],
)
def test_the_script_serves_the_examples_where_only_options_are_given(
    tmp_path: Path, words: tuple[str, ...], served: bool
) -> None:
    """V2: an option alone names nothing to serve."""
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "lib.sh").write_text(f"root={tmp_path} venv={tmp_path}\nensure_venv() {{ :; }}\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "afoot").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tmp_path / "bin" / "afoot").chmod(0o755)
    script = tmp_path / "scripts" / "serve"
    script.write_text((ROOT / "scripts" / "serve").read_text())
    done = subprocess.run(
        ["bash", str(script), *words],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=True,
        cwd=tmp_path,
    )
    examples = [str(tmp_path / "examples" / "tools.py")] if served else []
    assert done.stdout.split("\n")[:-1] == ["serve", *examples, *words]


def test_a_state_folder_that_cannot_be_made_names_the_variable(lone: dict[str, str], tmp_path: Path) -> None:
    """V2: AFOOT_HOME, which says where it is."""
    (tmp_path / "good.py").write_text(GOOD)
    (tmp_path / "home").write_text("in the way")
    done = program(("serve", "good.py", "--http", "127.0.0.1:0"), lone, tmp_path)
    assert done.returncode == 2 and "AFOOT_HOME" in done.stderr and len(done.stderr.splitlines()) == 1
