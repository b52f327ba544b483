"""Who is asked, and what the allowlist covers: definitions, arguments, connections, time."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw, json
from msgspec.structs import replace

from afoot.core.facts import Answer
from afoot.core.ports import Tool
from afoot.engine.approval.allowlist import AllowlistEntry, allowlist_entry, arguments_digest
from afoot.engine.approval.policy import MAX_BOUND_ENTRIES, OPERATOR_PRESENT_S, ApprovalPolicy
from afoot.engine.approval.question import Decision
from afoot.errors import CallerError, ToolError, UnknownName

TOOL = Tool("delete", "files", Raw(b"{}"), digest="d1", destructive=True)
OTHER = replace(TOOL, name="move", digest="d2")
NOTHING_GIVEN = Raw(b"{}")
BY_OPERATOR, BY_CALLER = Answer(by="operator"), Answer(by="session:1")


def allowed(said: Decision, by: Answer = BY_OPERATOR, arguments: bytes = b"{}") -> AllowlistEntry:
    """The entry that a decision makes for a call of session:1 at 1,000 s."""
    return allowlist_entry(said, [TOOL], by, "session:1", Raw(arguments), 1000.0)


class Drawer:
    """A shelf that keeps what is written, as a file would."""

    def __init__(self, *entries: AllowlistEntry) -> None:
        self.kept = list(entries)
        self.is_new = True
        self.broken = False

    def read(self) -> list[AllowlistEntry] | None:
        """What somebody has changed."""
        if self.broken:
            raise CallerError("allow.json: cannot be read")
        is_new, self.is_new = self.is_new, False
        return list(self.kept) if is_new else None

    def write(self, things: list[AllowlistEntry]) -> None:
        """Keep them."""
        if self.broken:
            raise CallerError("allow.json: cannot be read")
        self.kept = list(things)


def test_a_tool_is_allowed_as_it_was_defined_and_asked_again_when_that_changes() -> None:
    """A4: bound to the digest of its definition, on its own server."""
    policy = ApprovalPolicy()
    policy.allow(allowed(Decision("always", lasts="ever")))
    assert policy.allows(TOOL, NOTHING_GIVEN, "local", 2000.0)
    for other in (replace(TOOL, digest="d9"), replace(TOOL, server="elsewhere"), OTHER):
        assert not policy.allows(other, NOTHING_GIVEN, "local", 2000.0)
    why = policy.reason_to_ask(replace(TOOL, digest="d9"), "local")
    assert "has changed since it was allowed" in why


def test_a_tool_under_another_name_here_is_the_same_tool() -> None:
    """A4, U3: a prefix that a collision makes necessary changes nothing."""
    policy = ApprovalPolicy()
    policy.allow(allowed(Decision("always", lasts="ever")))
    assert policy.allows(replace(TOOL, name="files__delete", inner="delete"), NOTHING_GIVEN, "local", 2000.0)


def test_exact_arguments_are_those_alone_whatever_their_order() -> None:
    """A2, A6: one more space is the same, one more letter is not."""
    policy = ApprovalPolicy()
    said = Decision("always", scope="arguments", lasts="ever")
    policy.allow(allowed(said, arguments=b'{"path": "/a", "n": 1}'))
    assert policy.allows(TOOL, Raw(b'{"n":1,\n"path":"/a"}'), "local", 2000.0)
    for other in (b'{"path": "/ab", "n": 1}', b'{"path": "/a"}', b'{"path": "/a", "n": "1"}', b"{}"):
        assert not policy.allows(TOOL, Raw(other), "local", 2000.0)


def test_arguments_that_can_be_read_in_two_ways_are_their_own() -> None:
    """A6: who takes the first of two equal keys is not fooled by who takes the last."""
    assert arguments_digest(Raw(b'{"a": 1, "a": 2}')) != arguments_digest(Raw(b'{"a": 2}'))
    assert arguments_digest(Raw(b'{"a": {"b": 1, "b": 2}}')) != arguments_digest(Raw(b'{"a": {"b": 2}}'))
    deep = b'{"a":' * 5000 + b"1" + b"}" * 5000
    assert arguments_digest(Raw(deep)) == arguments_digest(Raw(deep)) != arguments_digest(Raw(b"{}"))
    assert arguments_digest(Raw(b'{"a": "\\ud800"}')) != arguments_digest(Raw(b'{"a": "?"}'))


# Small ones: they are found as often, and a busy machine makes them in time.
WORDS = st.text(max_size=3)
VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | WORDS,
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=5,
)
ARGUMENTS = st.dictionaries(WORDS, VALUES, max_size=3)


@given(ARGUMENTS, ARGUMENTS)
def test_two_arguments_have_one_digest_exactly_when_they_are_the_same(a: Any, b: Any) -> None:
    """A6: nothing else can be run on an approval."""
    turned = dict(reversed(a.items()))
    assert arguments_digest(Raw(json.encode(a))) == arguments_digest(Raw(json.encode(turned)))
    same = json.encode(a, order="sorted") == json.encode(b, order="sorted")
    assert (arguments_digest(Raw(json.encode(a))) == arguments_digest(Raw(json.encode(b)))) == same


@pytest.mark.parametrize(("until_s", "is_allowed"), [(999.9, True), (1000.0, False), (9999.0, False)])
def test_a_time_is_over_when_it_is_over(until_s: float, is_allowed: bool) -> None:
    """A2: for a time."""
    policy = ApprovalPolicy()
    policy.allow(allowed(Decision("always", lasts=1000.0)))
    assert policy.allows(TOOL, NOTHING_GIVEN, "local", 1000.0 + until_s) is is_allowed


def test_a_connection_is_that_connection_and_never_stored() -> None:
    """A2, A5: in memory, for its caller alone."""
    drawer = Drawer()
    policy = ApprovalPolicy(drawer)
    policy.allow(allowed(Decision("always")))
    assert policy.allows(TOOL, NOTHING_GIVEN, "session:1", 2000.0)
    assert not policy.allows(TOOL, NOTHING_GIVEN, "session:2", 2000.0)
    assert drawer.kept == []


@pytest.mark.parametrize("lasts", ["ever", 3600.0])
def test_beyond_its_connection_a_callers_word_does_not_count(lasts: str | float) -> None:
    """A5: only the operator may allow for ever; a time that the caller gives is kept."""
    drawer = Drawer()
    policy = ApprovalPolicy(drawer)
    policy.allow(allowed(Decision("always", lasts=lasts), BY_CALLER))
    assert drawer.kept == [] and not policy.allows(TOOL, NOTHING_GIVEN, "session:2", 1001.0)
    assert policy.allows(TOOL, NOTHING_GIVEN, "session:1", 1001.0)
    assert policy.allows(TOOL, NOTHING_GIVEN, "session:1", 9999.0) is (lasts == "ever")


def test_the_operators_word_is_stored_and_revoked() -> None:
    """A4, A5: and another gateway finds it there."""
    drawer = Drawer()
    policy = ApprovalPolicy(drawer)
    made = policy.allow(allowed(Decision("always", lasts="ever")))
    assert drawer.kept == [made]
    later = ApprovalPolicy(Drawer(*drawer.kept))
    assert later.allows(TOOL, NOTHING_GIVEN, "anybody", 2000.0)
    assert policy.revoke(made.id) == made and drawer.kept == []
    assert not policy.allows(TOOL, NOTHING_GIVEN, "session:1", 2000.0)
    with pytest.raises(UnknownName, match="allowlist entry"):
        policy.revoke(made.id)


def test_what_another_process_stored_or_revoked_counts_at_once() -> None:
    """A4: several gateways may share one state folder."""
    made = allowed(Decision("always", lasts="ever"))
    drawer = Drawer()
    policy = ApprovalPolicy(drawer)
    assert not policy.allows(TOOL, NOTHING_GIVEN, "local", 2000.0)
    drawer.kept, drawer.is_new = [made], True
    assert policy.allows(TOOL, NOTHING_GIVEN, "local", 2000.0)
    drawer.kept.clear()
    drawer.is_new = True
    assert not policy.allows(TOOL, NOTHING_GIVEN, "local", 2000.0)


def test_a_list_that_cannot_be_read_allows_nothing_and_is_not_overwritten() -> None:
    """A4: until it is mended everything is asked, but for what was said here."""
    drawer = Drawer(allowed(Decision("always", lasts="ever")))
    policy = ApprovalPolicy(drawer)
    assert policy.allows(TOOL, NOTHING_GIVEN, "local", 2000.0)
    drawer.broken = True
    assert not policy.allows(TOOL, NOTHING_GIVEN, "local", 2000.0)
    before = drawer.kept
    with pytest.raises(CallerError, match=r"allow\.json"):
        policy.allow(allowed(Decision("always", lasts="ever")))
    assert drawer.kept == before


def test_saying_it_twice_makes_one_entry_and_connections_have_a_bound() -> None:
    """A4: the longer one stays; the oldest connection makes room."""
    policy = ApprovalPolicy()
    policy.allow(allowed(Decision("always", lasts=60.0)))
    policy.allow(allowed(Decision("always", lasts="ever")))
    assert [one.until for one in policy.entries] == [None]
    for number in range(MAX_BOUND_ENTRIES + 5):
        said = Decision("always")
        policy.allow(allowlist_entry(said, [TOOL], BY_CALLER, f"session:{number}", NOTHING_GIVEN, 1000.0))
    assert len(policy.entries) == MAX_BOUND_ENTRIES + 1
    assert not policy.allows(replace(TOOL, digest="d9"), NOTHING_GIVEN, "session:0", 1001.0)


def test_a_server_is_the_tools_it_has_now() -> None:
    """A2, A4: one that comes later, or changes, is asked."""
    policy = ApprovalPolicy()
    said = Decision("always", scope="server", lasts="ever")
    policy.allow(allowlist_entry(said, [TOOL, OTHER], BY_OPERATOR, "local", NOTHING_GIVEN, 1000.0))
    assert all(policy.allows(tool, NOTHING_GIVEN, "x", 2000.0) for tool in (TOOL, OTHER))
    for later in (replace(OTHER, digest="d3"), replace(OTHER, name="new")):
        assert not policy.allows(later, NOTHING_GIVEN, "x", 2000.0)


# By ask_by, whether the caller can be asked, and whether an operator is there.
ASKED: dict[tuple[str, bool, bool], str | None] = {
    ("", True, True): "caller", ("", True, False): "caller",
    ("", False, True): "operator", ("", False, False): None,
    ("caller", True, True): "caller", ("caller", True, False): "caller",
    ("caller", False, True): None, ("caller", False, False): None,
    ("operator", True, True): "operator", ("operator", True, False): None,
    ("operator", False, True): "operator", ("operator", False, False): None,
    ("both", True, True): "", ("both", True, False): "",
    ("both", False, True): "operator", ("both", False, False): None,
}  # fmt: skip


@pytest.mark.parametrize(("row", "to"), ASKED.items())
def test_who_is_asked(row: tuple[str, bool, bool], to: str | None) -> None:
    """A1, A5: by the setting, by what the caller can, and by who was seen."""
    ask_by, can_ask, is_there = row
    policy = ApprovalPolicy()
    policy.ask_by = ask_by
    policy.seen = 1000.0 if is_there else 1000.0 - OPERATOR_PRESENT_S - 0.1
    if to is None:
        with pytest.raises(ToolError, match="nobody can give it") as caught:
            policy.whom_to_ask(TOOL, can_ask, 1000.0)
        assert '[tools."files/delete"]' in caught.value.hint and caught.value.category == "refused"
        assert "approval =" not in caught.value.message
    else:
        assert policy.whom_to_ask(TOOL, can_ask, 1000.0) == to


def test_where_it_may_wait_the_operator_is_asked_though_nobody_was_seen() -> None:
    """A1: `unanswerable = "wait"`."""
    policy = ApprovalPolicy()
    policy.waits = True
    assert policy.whom_to_ask(TOOL, False, 1000.0) == policy.whom_to_ask_next(TOOL, 1000.0) == "operator"


@pytest.mark.parametrize("is_new", [True, False])
def test_an_operator_counts_as_there_for_a_minute(is_new: bool) -> None:
    """A1: seen 60 s ago is there, a moment longer is not."""
    policy = ApprovalPolicy()

    def ask() -> str:
        return policy.whom_to_ask(TOOL, False, 61.0) if is_new else policy.whom_to_ask_next(TOOL, 61.0)

    policy.seen = 1.0
    assert ask() == "operator"
    policy.seen = 0.9
    with pytest.raises(ToolError, match="no operator was seen for 60 s"):
        ask()
