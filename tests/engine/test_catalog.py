"""The catalog: nearest names, limits in force, and being told of changes."""

import pytest
from msgspec import Raw

from afoot.config.settings import Server, ToolSettings
from afoot.core.facts import Limits
from afoot.core.ports import Run, Tool
from afoot.engine.catalog import Catalog, EffectiveSettings, lower_limits
from afoot.errors import UnknownName
from tests.engine.fake_engine import Bench


async def nothing(run: Run) -> str:
    """Does nothing."""
    return ""


def bench(*names: str) -> Bench:
    """A provider of tools with these names."""
    made = Bench()
    for name in names:
        made.add(nothing, name)
    return made


def test_an_unknown_tool_lists_the_nearest() -> None:
    """E5: what was meant is named."""
    catalog = Catalog()
    catalog.put(bench("export_pages", "import_pages", "delete"))
    with pytest.raises(UnknownName, match="unknown tool 'export_page'; nearest: export_pages, import_pages"):
        catalog.get("export_page")
    with pytest.raises(UnknownName, match="unknown tool 'zzzzzzzz'$"):
        catalog.get("zzzzzzzz")


def test_an_unknown_server_lists_the_nearest() -> None:
    """E5: also when it is to be removed."""
    catalog = Catalog()
    catalog.put(bench("x"))
    with pytest.raises(UnknownName, match="unknown server 'bemch'; nearest: bench"):
        catalog.remove("bemch")


def test_listeners_are_told_of_every_change_until_they_leave() -> None:
    """U5: a list that changed is known."""
    catalog, told = Catalog(), list[int]()
    leave = catalog.listen(lambda: told.append(catalog.version))
    catalog.put(bench("one"))
    catalog.put(bench("two"))
    assert [tool.name for tool in catalog] == ["two"]
    catalog.remove("bench")
    leave()
    catalog.put(bench("three"))
    assert told == [1, 2, 3] and catalog.version == 4


@pytest.mark.parametrize(
    ("terms", "idle_s", "ceiling_s"),
    [
        (EffectiveSettings(), 30.0, 300.0),
        (EffectiveSettings(servers={"bench": Server(idle_s=5.0)}), 5.0, 300.0),
        (
            EffectiveSettings(servers={"bench": Server(idle_s=5.0)}, tools={"x": ToolSettings(idle_s=7.0)}),
            7.0,
            300.0,
        ),
        (EffectiveSettings(tools={"x": ToolSettings(ceiling_s=900.0)}, max_ceiling_s=600.0), 30.0, 600.0),
        (
            EffectiveSettings(
                tools={"other": ToolSettings(idle_s=1.0)}, servers={"another": Server(idle_s=2.0)}
            ),
            30.0,
            300.0,
        ),
    ],
)
def test_the_nearest_setting_wins_and_the_maximum_caps_it(
    terms: EffectiveSettings, idle_s: float, ceiling_s: float
) -> None:
    """C3: per gateway, per server, per tool, and a hard maximum."""
    limits = terms.apply_to(Tool("x", "bench", Raw(b"{}"))).limits
    assert (limits.idle_s, limits.ceiling_s) == (idle_s, ceiling_s)


def test_a_maximum_holds_for_a_tool_without_an_idle_limit() -> None:
    """C3: no limit is more than any limit."""
    tool = Tool("x", "bench", Raw(b"{}"), Limits(idle_s=None))
    assert EffectiveSettings(max_idle_s=9.0).apply_to(tool).limits.idle_s == 9.0


def test_limits_are_only_ever_lowered() -> None:
    """C3: every other limit stays as it was."""
    limits = Limits(10.0, 100.0, 1.0, 2.0, 3.0)
    assert lower_limits(limits, 20.0, 200.0) == limits
    assert lower_limits(limits, 5.0, 50.0) == Limits(5.0, 50.0, 1.0, 2.0, 3.0)
    assert lower_limits(limits, None, None) is limits
