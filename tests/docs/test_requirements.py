"""The page of requirements and the tests agree: what is promised is proved, what is proved is promised."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.page import ROOT, read

PAGE = "docs/requirements.md"
TESTS = ROOT / "tests"
# Promised, and not proved yet. May only shrink.
UNPROVED: set[str] = set()

_ID = re.compile(r"([A-Z]\d+)(?: \(?([a-h])\)?)?")


def promised() -> dict[str, list[str]]:
    """By id: the tests that the page names."""
    found: dict[str, list[str]] = {}
    at = ""
    for line in read(PAGE).splitlines():
        if promise := re.match(r"- \*\*(.+?)\*\* ", line):
            at = promise[1]
            assert at not in found, f"{at} stands twice"
            found[at] = []
        elif test := re.fullmatch(r"  - `(.+)`", line):
            found[at].append(test[1])
    return found


def proved() -> dict[str, set[str]]:
    """By id: the tests whose docstring begins with it."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in TESTS.rglob("*.py"):
        # Functions of these files are tools and prompts that the official suite calls test_…
        if path.name not in ("fixture.py", "fixture_offers.py"):
            for name, doc in documented(path):
                for number in ids(doc.partition(":")[0]):
                    found[number].add(f"{path.relative_to(TESTS)}::{name}")
    return found


def documented(path: Path) -> Iterator[tuple[str, str]]:
    """The tests of a file, with their docstrings."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node.name, ast.get_docstring(node) or ""


def ids(text: str) -> Iterator[str]:
    """The ids at the beginning of a docstring: `Q1 d, e, X1` are three."""
    last = ""
    for word in re.split(r",\s*", text):
        if found := _ID.fullmatch(word):
            last = found[1]
            yield f"{last} {found[2]}" if found[2] else last
        elif last and re.fullmatch(r"[a-h]", word):
            yield f"{last} {word}"


@pytest.mark.timeout(120)
def test_every_promise_has_tests_that_exist_and_name_it() -> None:
    """House: a promise without a proof is a wish."""
    known = proved()
    for number, named in promised().items():
        assert bool(named) != (number in UNPROVED), f"{number}: {len(named)} tests"
        for test in named:
            assert test in known[number], f"{number}: {test} does not exist, or does not name {number}"


@pytest.mark.timeout(120)
def test_every_id_that_a_test_names_is_promised() -> None:
    """House: nothing is proved that nobody asked for."""
    assert set(proved()) - set(promised()) == set()
