"""On which terms tools of pages are run: asked by kind, off in strange frames, trusted only by origin."""

import pytest
from msgspec import Raw

from afoot.config.settings import Server, ToolSettings
from afoot.core.facts import Answer
from afoot.core.ports import Tool
from afoot.engine.approval.allowlist import allowlist_entry
from afoot.engine.approval.policy import ApprovalPolicy
from afoot.engine.approval.question import Decision, approval_question
from afoot.engine.catalog import EffectiveSettings

SHOP = "https://shop.example"
AUTO, ASK, OFF = ToolSettings(approval="auto"), ToolSettings(approval="ask"), ToolSettings(approval="off")

# By what is set, and whether the tool is in a frame of a stranger: its mode.
MODES: list[tuple[EffectiveSettings, str, str]] = [
    (EffectiveSettings(), "ask", "off"),
    (EffectiveSettings(approval="auto"), "auto", "off"),
    (EffectiveSettings(approval="ask"), "ask", "off"),
    (EffectiveSettings(policy="careful"), "ask", "off"),
    (EffectiveSettings({}, {"browser": Server(approval="auto")}), "auto", "off"),
    (EffectiveSettings({}, {"browser": Server(approval="off")}), "off", "off"),
    (EffectiveSettings({f"{SHOP}/*": AUTO}), "auto", "auto"),
    (EffectiveSettings({f"{SHOP}/add": ASK}), "ask", "ask"),
    (EffectiveSettings({"https://*": OFF, f"{SHOP}/*": AUTO}), "auto", "auto"),
    (EffectiveSettings({"https://other.example/*": AUTO}), "ask", "off"),
    (EffectiveSettings({"browser/*": AUTO}), "auto", "auto"),
    # A page chooses its name, and the first page may have it: a name or pattern without an origin trusts
    # nobody, and may still forbid.
    (EffectiveSettings({"browser/shop_example_add": AUTO}), "ask", "off"),
    (EffectiveSettings({"shop_example_add": AUTO}), "ask", "off"),
    (EffectiveSettings({"shop_example_add": OFF}), "off", "off"),
    (EffectiveSettings({"*": AUTO}), "ask", "off"),
    (EffectiveSettings({"*_add": AUTO}), "ask", "off"),
    (EffectiveSettings({"shop_*": AUTO}), "ask", "off"),
    (EffectiveSettings({"*_add": OFF}), "off", "off"),
    (EffectiveSettings({"*": ASK}, approval="auto"), "ask", "ask"),
]


def tool(**more: object) -> Tool:
    """A tool of the shop's page."""
    options = {
        "source": f"page:{SHOP}",
        "address": f"{SHOP}/add",
        "default_approval": "ask",
        "trusted": False,
        **more,
    }
    return Tool("shop_example_add", "browser", Raw(b"{}"), digest="d1", **options)  # pyrefly: ignore[bad-argument-type]


@pytest.mark.parametrize("row", range(len(MODES)))
def test_the_mode_of_a_page_s_tool(row: int) -> None:
    """A1, U12: ask by kind, off in a frame whose origin is not the tab's, else what is set for its origin."""
    terms, own, framed = MODES[row]
    assert terms.apply_to(tool()).approval == own
    assert terms.apply_to(tool(default_approval="off")).approval == framed


def test_a_pattern_without_an_origin_makes_no_page_safe_to_repeat() -> None:
    """U4, B7: nor does anything that a page says of itself."""
    loose = EffectiveSettings({"*": ToolSettings(idempotent=True, read_only=True, ceiling_s=7.0)})
    settled = loose.apply_to(tool(read_only=True))
    assert (settled.trusted, settled.idempotent, settled.limits.ceiling_s) == (False, False, 7.0)
    strict = EffectiveSettings({f"{SHOP}/*": ToolSettings(idempotent=True)})
    settled = strict.apply_to(tool(read_only=True))
    assert (settled.trusted, settled.idempotent, settled.read_only) == (True, True, False)


def test_what_is_set_for_a_name_does_not_count_for_a_page_that_had_to_give_it_up() -> None:
    """B2: its tool is called otherwise then, and only that name means it."""
    renamed = tool(inner="shop_example_add")
    renamed = Tool("shop_example_add_1234", *[getattr(renamed, key) for key in renamed.__struct_fields__[1:]])
    assert EffectiveSettings({"shop_example_add": OFF}).apply_to(renamed).approval == "ask"
    assert EffectiveSettings({"shop_example_add_1234": OFF}).apply_to(renamed).approval == "off"


def test_an_allowlist_entry_is_for_one_source_and_one_definition() -> None:
    """A4: another origin with the same name and words is asked again; so is new code of a plugin."""
    policy = ApprovalPolicy()
    decision = Decision("always", scope="server", lasts="ever")
    allowed = allowlist_entry(decision, [tool()], Answer(by="operator"), "local", Raw(b"{}"), 0.0)
    policy.allow(allowed)
    assert allowed.source == f"page:{SHOP}"
    assert policy.allows(tool(), Raw(b"{}"), "local", 1.0)
    changed = Tool("shop_example_add", "browser", Raw(b"{}"), digest="d2", source=f"page:{SHOP}")
    assert not policy.allows(changed, Raw(b"{}"), "local", 1.0)


def test_a_reviewer_is_told_whose_tool_it_is_before_anything_the_page_chose() -> None:
    """A2, B7: a name may look like another's."""
    asked = approval_question(tool(), Raw(b'{"n": 1}'), "operator", "local", "why")
    assert asked.message == 'Run browser/shop_example_add of page https://shop.example ({"n": 1})?'
