"""On which terms a tool is run: its mode of approval, by what is set and by what it is."""

from typing import Any

import pytest
from msgspec import Raw

from afoot.config.settings import Server, ToolSettings
from afoot.core.ports import Tool
from afoot.engine.catalog import EffectiveSettings
from afoot.engine.engine import Submission
from afoot.errors import Refused
from tests.engine.fake_engine import engine_of, works

# By what a tool is and what is set: its mode.
MODES: list[tuple[dict[str, Any], EffectiveSettings, str]] = [
    ({}, EffectiveSettings(), "auto"),
    ({"destructive": True}, EffectiveSettings(), "ask"),
    ({"destructive": True, "trusted": False}, EffectiveSettings(), "ask"),
    ({"approval": "ask"}, EffectiveSettings(), "ask"),
    ({"approval": "auto", "destructive": True}, EffectiveSettings(), "auto"),
    ({"destructive": True}, EffectiveSettings(approval="auto"), "auto"),
    ({}, EffectiveSettings(approval="ask"), "ask"),
    ({"read_only": True}, EffectiveSettings(policy="careful"), "auto"),
    ({"read_only": True, "trusted": False}, EffectiveSettings(policy="careful"), "ask"),
    ({}, EffectiveSettings(policy="careful"), "ask"),
    ({"destructive": True}, EffectiveSettings({"tool": ToolSettings(approval="auto")}), "auto"),
    ({"approval": "auto"}, EffectiveSettings({"to*": ToolSettings(approval="ask")}), "ask"),
    ({}, EffectiveSettings({"bench/*": ToolSettings(approval="ask")}), "ask"),
    ({}, EffectiveSettings({}, {"bench": Server(approval="ask")}), "ask"),
    (
        {},
        EffectiveSettings({"tool": ToolSettings(approval="auto")}, {"bench": Server(approval="ask")}),
        "auto",
    ),
    ({"read_only": True}, EffectiveSettings({"tool": ToolSettings(approval="ask")}, policy="careful"), "ask"),
]


@pytest.mark.parametrize("row", range(len(MODES)))
def test_the_mode_of_a_tool(row: int) -> None:
    """A1: what is set for it wins, then what its author says, then what it is."""
    options, terms, mode = MODES[row]
    assert terms.apply_to(Tool("tool", "bench", Raw(b"{}"), **options)).approval == mode


async def test_off_is_invisible_and_refused() -> None:
    """A1: by any of its names."""
    async with engine_of(works, terms=EffectiveSettings({"tool": ToolSettings(approval="off")})) as engine:
        assert list(engine.catalog) == []
        for name in ("tool", "bench/tool"):
            with pytest.raises(Refused, match="switched off"):
                engine.submit(Submission(name))
