"""The terms on which tools run: which setting wins, what is safe, and who starts at once."""

from typing import Any

import pytest
from msgspec import Raw

from afoot.config.settings import Server, ToolSettings
from afoot.core.facts import Limits
from afoot.core.ports import Tool
from afoot.engine.catalog import EffectiveSettings

AUTO, ASK = ToolSettings(approval="auto"), ToolSettings(approval="ask")


def approval(terms: EffectiveSettings, **options: Any) -> str:
    """The mode of the tool `read` of server files, whatever it is called here."""
    tool = Tool("anything", "files", Raw(b"{}"), inner="read", alias="files__read", **options)
    return terms.apply_to(tool).approval


@pytest.mark.parametrize(
    ("tools", "mode"),
    [
        ({"*": ASK}, "ask"),
        ({"files/*": ASK}, "ask"),
        ({"mail/*": ASK}, "auto"),
        ({"re*": ASK}, "ask"),
        ({"*": ASK, "files/re*": AUTO}, "auto"),
        ({"files/re*": AUTO, "*": ASK}, "ask"),
        ({"read": AUTO, "*": ASK}, "auto"),
        ({"files__read": AUTO, "files/*": ASK}, "auto"),
        ({"files/read": AUTO, "read": ASK}, "auto"),
        ({"files/read": AUTO, "files__read": ASK, "read": ASK}, "auto"),
        ({"files__read": AUTO, "read": ASK}, "auto"),
        ({"read": ToolSettings(idle_s=1.0), "*": ASK}, "ask"),
    ],
)
def test_the_nearest_setting_of_a_tool_wins(tools: dict[str, ToolSettings], mode: str) -> None:
    """A1, C3, U12: patterns in the order of the file, then its own name, SERVER__NAME, and server/name."""
    assert approval(EffectiveSettings(tools=tools)) == mode


@pytest.mark.parametrize(
    ("terms", "options", "mode"),
    [
        (EffectiveSettings(), {}, "auto"),
        (EffectiveSettings(), {"destructive": True}, "ask"),
        (EffectiveSettings(), {"approval": "ask"}, "ask"),
        (EffectiveSettings(), {"destructive": True, "approval": "auto"}, "auto"),
        (EffectiveSettings(approval="ask"), {}, "ask"),
        (EffectiveSettings(approval="auto"), {"destructive": True}, "auto"),
        (EffectiveSettings(servers={"files": Server(approval="ask")}), {}, "ask"),
        (
            EffectiveSettings(servers={"files": Server(approval="auto")}, approval="ask"),
            {"approval": "ask"},
            "auto",
        ),
        (EffectiveSettings(servers={"files": Server(approval="auto")}, tools={"read": ASK}), {}, "ask"),
        (EffectiveSettings(policy="careful"), {}, "ask"),
        (EffectiveSettings(policy="careful"), {"read_only": True}, "auto"),
        (EffectiveSettings(policy="careful"), {"read_only": True, "trusted": False}, "ask"),
        (EffectiveSettings(policy="careful", approval="auto"), {}, "auto"),
        (
            EffectiveSettings(policy="careful", tools={"read": ToolSettings(read_only=True)}),
            {"trusted": False},
            "auto",
        ),
    ],
)
def test_approval_comes_from_the_setting_the_server_the_author_or_the_default(
    terms: EffectiveSettings, options: dict[str, Any], mode: str
) -> None:
    """A1: in that order; careful asks for all but what a trusted source calls read-only."""
    assert approval(terms, **options) == mode


def limits(terms: EffectiveSettings, of: Limits | None = None) -> Limits:
    """The limits of tool `read` of server files."""
    return terms.apply_to(Tool("read", "files", Raw(b"{}"), of or Limits())).limits


def test_each_limit_comes_from_the_nearest_that_sets_it() -> None:
    """C3: a tool's own setting leaves what it does not name to the pattern, the server and the default."""
    terms = EffectiveSettings(
        tools={"files/read": ToolSettings(idle_s=1.0), "files/*": ToolSettings(idle_s=2.0, ceiling_s=2.0)},
        servers={"files": Server(idle_s=3.0, ceiling_s=3.0, start_s=3.0)},
    )
    found = limits(terms)
    assert (found.idle_s, found.ceiling_s, found.start_s, found.answer_s) == (1.0, 2.0, 3.0, 600.0)


def test_a_maximum_caps_every_setting() -> None:
    """C3: the nearest wins, but never over it."""
    far = {"read": ToolSettings(idle_s=90.0, ceiling_s=9000.0)}
    assert limits(EffectiveSettings(tools=far, max_idle_s=60.0, max_ceiling_s=600.0)) == Limits(60.0, 600.0)


def test_only_an_idle_limit_that_is_set_ends_patience() -> None:
    """C1: a maximum caps it and leaves it patient."""
    patient = Limits(patient=True)
    assert limits(EffectiveSettings(max_idle_s=9.0), patient) == Limits(9.0, patient=True)
    assert limits(EffectiveSettings(servers={"files": Server(ceiling_s=9.0)}), patient).patient
    assert not limits(EffectiveSettings(servers={"files": Server(idle_s=9.0)}), patient).patient


def test_what_the_settings_say_of_a_tools_safety_counts_whoever_it_is_from() -> None:
    """U4: by config a tool of a stranger is safe to repeat, or one of a friend is not."""
    stranger = Tool("read", "files", Raw(b"{}"), trusted=False)
    settled = EffectiveSettings(tools={"files/*": ToolSettings(idempotent=True)}).apply_to(stranger)
    assert settled.idempotent and settled.trusted
    friend = Tool("read", "files", Raw(b"{}"), read_only=True)
    assert not EffectiveSettings(tools={"read": ToolSettings(read_only=False)}).apply_to(friend).read_only


def test_saying_that_one_thing_holds_makes_no_other_claim_of_a_stranger_count() -> None:
    """U4, A1: its own word for being read-only stays untrusted where only `idempotent` is set."""
    stranger = Tool("read", "files", Raw(b"{}"), trusted=False, read_only=True)
    settled = EffectiveSettings(tools={"read": ToolSettings(idempotent=True)}, policy="careful").apply_to(
        stranger
    )
    assert settled.idempotent and settled.approval == "ask"


@pytest.mark.parametrize(
    ("terms", "options", "plain"),
    [
        (EffectiveSettings(), {}, True),
        (EffectiveSettings(approval="ask"), {}, False),
        (EffectiveSettings(servers={"files": Server(concurrency=2)}), {}, False),
        (EffectiveSettings(), {"starts": True}, False),
        (EffectiveSettings(), {"trusted": False}, False),
        (EffectiveSettings(), {"limits": Limits(patient=True)}, False),
    ],
)
def test_a_plain_tool_starts_at_once(terms: EffectiveSettings, options: dict[str, Any], plain: bool) -> None:
    """C8: no approval, no slot of its server, nothing to start, nothing to wait for."""
    assert terms.apply_to(Tool("read", "files", Raw(b"{}"), **options)).plain is plain


def test_concurrency_and_lifecycle_come_from_the_nearest_too() -> None:
    """C8, T5: 0 is a setting: no limit."""
    every, near = ToolSettings(concurrency=5, lifecycle="stages"), ToolSettings(concurrency=0)
    settled = EffectiveSettings(tools={"*": every, "read": near}).apply_to(
        Tool("read", "files", Raw(b"{}"), concurrency=3)
    )
    assert (settled.concurrency, settled.lifecycle) == (0, "stages")
