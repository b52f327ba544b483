"""The threat model and the tests agree: nothing is said to be prevented that no test shows."""

import re

from tests.docs.page import read, sections
from tests.docs.test_requirements import TESTS, documented

PAGE = "docs/security.md"
ATTACKERS = ("A page", "An upstream", "A client", "A tool", "Another user of the machine", "The network")
GAPS = "What is not held"

_TEST = re.compile(r"`([\w/]+\.py)::(test_\w+)`")


def tables(text: str) -> dict[str, list[list[str]]]:
    """The tables of a section, by their first heading: rows of cells, without heads."""
    found: dict[str, list[list[str]]] = {}
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        lines = block.splitlines()
        head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
        found[head[0]] = rows
    return found


def test_every_attacker_has_what_it_may_and_what_it_may_not() -> None:
    """S8: for each kind of attacker, and the gaps at the end."""
    found = sections(PAGE, 2)
    assert list(found) == [*ATTACKERS, GAPS]
    for attacker in ATTACKERS:
        assert list(tables(found[attacker])) == [f"{attacker} may", f"{attacker} may not"]
    assert tables(found[GAPS])["Attacker"]


def test_every_threat_names_a_test_that_exists() -> None:
    """S8: a test that was renamed or deleted shows nothing."""
    known: dict[str, set[str]] = {}
    for attacker in ATTACKERS:
        for threat, shown in tables(sections(PAGE, 2)[attacker])[f"{attacker} may not"]:
            named = _TEST.fullmatch(shown)
            assert named is not None, f"{attacker} may not {threat}: {shown} is no test"
            path, name = named.groups()
            if path not in known:
                assert (TESTS / path).is_file(), f"{attacker} may not {threat}: {path} does not exist"
                known[path] = {test for test, _ in documented(TESTS / path)}
            assert name in known[path], f"{attacker} may not {threat}: {path} has no {name}"


def test_every_test_on_the_page_stands_in_a_row_that_is_checked() -> None:
    """S8: none is named where the check above would not see it."""
    rows = [row for one in ATTACKERS for row in tables(sections(PAGE, 2)[one])[f"{one} may not"]]
    assert len(rows) == read(PAGE).count(".py::")
