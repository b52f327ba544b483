"""Which names belong to which server, and what a name in the settings means."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import Raw

from afoot.core.names import (
    BARE_NOTHING,
    BARE_STRICTER,
    MAX_NAME_CHARS,
    ServerNames,
    offered_name,
    pattern_fits,
    pattern_trusts,
)
from afoot.core.ports import Tool

SERVERS = ("good", "evil", "a", "a__b", "a_", "x.y", "x y", "s" * 50)


def tool(server: str, own: str, bare: str) -> Tool:
    """A tool of an upstream, as the catalog makes it."""
    alias = ServerNames(SERVERS).prefixed(server, own)
    return Tool("anything", server, Raw(b"{}"), inner=own, alias=alias, bare=bare)


@given(st.sampled_from(SERVERS), st.text(max_size=90))
def test_a_prefixed_name_always_belongs_to_its_server(server: str, own: str) -> None:
    """U12: whatever the tool is called; in characters and of a length that hosts take."""
    names = ServerNames(SERVERS)
    for is_marked in (False, True):
        found = names.prefixed(server, own, is_marked=is_marked)
        assert names.owner(found) == server
        assert len(found) <= MAX_NAME_CHARS and found.isascii() and " " not in found and "/" not in found


@example("A:", "")
@example("page_a_", "")
@given(st.text(min_size=1, max_size=90), st.text(max_size=20))
def test_the_name_of_a_page_belongs_to_no_server(name: str, source: str) -> None:
    """U12, B2: nor to the gateway."""
    found = ServerNames(SERVERS).outside(offered_name(name), source)
    assert not ServerNames(SERVERS).is_reserved(found, "") and len(found) <= MAX_NAME_CHARS


@pytest.mark.parametrize(
    "name", ["afoot_wait", "AFOOT_WAIT", "good__x", "Good__x", "good/x", "no/x", "a__b__c"]
)
def test_names_of_others_are_reserved(name: str) -> None:
    """U12: also in other letters, and before the other has such a tool."""
    assert ServerNames(SERVERS).is_reserved(name, "evil")


@pytest.mark.parametrize("name", ["read", "evil__x", "good_x", "goodness__x", "afoot"])
def test_other_names_are_free(name: str) -> None:
    """U12: a server may use its own prefix."""
    assert not ServerNames(SERVERS).is_reserved(name, "evil")


@pytest.mark.parametrize(
    ("pattern", "server", "own", "fits", "trusts"),
    [
        ("good/read", "good", "read", True, True),
        ("good/*", "good", "read", True, True),
        ("go*/re*", "good", "read", True, True),
        ("*", "good", "read", True, True),
        ("good__read", "good", "read", True, True),
        ("good__*", "good", "read", True, True),
        ("good*", "good", "read", True, False),
        ("read", "good", "read", True, False),
        ("re*", "good", "read", True, False),
        ("good/x/y", "good", "x/y", True, True),
        ("anything", "good", "read", False, False),
        ("*good/read", "evil", "good/read", False, False),
        ("good/read", "evil", "good/read", False, False),
        ("*__read", "evil", "read", True, False),
    ],
)
def test_a_pattern_means_a_server_and_its_own_name(
    pattern: str, server: str, own: str, fits: bool, trusts: bool
) -> None:
    """U12, A1: never the shown name; a pattern without a server may only make it stricter."""
    found = tool(server, own, bare=BARE_STRICTER)
    assert pattern_fits(pattern, found) is fits
    assert (fits and pattern_trusts(pattern, found)) is trusts


@pytest.mark.parametrize(("pattern", "fits"), [("good__read", False), ("good*", False), ("*_read", True)])
def test_a_tool_with_a_name_of_another_has_no_bare_name(pattern: str, fits: bool) -> None:
    """U12, A1: a rule that forbids is not escaped by a longer name."""
    assert pattern_fits(pattern, tool("evil", "good__read", bare=BARE_NOTHING)) is fits
