"""On which terms a tool is run: its mode of approval, by what is set and by what it is."""

from typing import Any

import pytest
from msgspec import Raw

from afoot.config import Server, ToolSettings
from afoot.core.ports import Tool
from afoot.engine.engine import Submission
from afoot.engine.terms import Terms
from afoot.errors import Refused
from tests.engine.double import engine_of
from tests.engine.reviewing import works

# By what a tool is and what is set: its mode.
MODES: list[tuple[dict[str, Any], Terms, str]] = [
    ({}, Terms(), "auto"),
    ({"destructive": True}, Terms(), "ask"),
    ({"destructive": True, "trusted": False}, Terms(), "ask"),
    ({"approval": "ask"}, Terms(), "ask"),
    ({"approval": "auto", "destructive": True}, Terms(), "auto"),
    ({"destructive": True}, Terms(approval="auto"), "auto"),
    ({}, Terms(approval="ask"), "ask"),
    ({"read_only": True}, Terms(policy="careful"), "auto"),
    ({"read_only": True, "trusted": False}, Terms(policy="careful"), "ask"),
    ({}, Terms(policy="careful"), "ask"),
    ({"destructive": True}, Terms({"tool": ToolSettings(approval="auto")}), "auto"),
    ({"approval": "auto"}, Terms({"to*": ToolSettings(approval="ask")}), "ask"),
    ({}, Terms({"bench/*": ToolSettings(approval="ask")}), "ask"),
    ({}, Terms({}, {"bench": Server(approval="ask")}), "ask"),
    ({}, Terms({"tool": ToolSettings(approval="auto")}, {"bench": Server(approval="ask")}), "auto"),
    ({"read_only": True}, Terms({"tool": ToolSettings(approval="ask")}, policy="careful"), "ask"),
]


@pytest.mark.parametrize("row", range(len(MODES)))
def test_the_mode_of_a_tool(row: int) -> None:
    """A1: what is set for it wins, then what its author says, then what it is."""
    options, terms, mode = MODES[row]
    assert terms.settle(Tool("tool", "bench", Raw(b"{}"), **options)).approval == mode


async def test_off_is_invisible_and_refused() -> None:
    """A1: by any of its names."""
    async with engine_of(works, terms=Terms({"tool": ToolSettings(approval="off")})) as engine:
        assert list(engine.catalog) == []
        for name in ("tool", "bench/tool"):
            with pytest.raises(Refused, match="switched off"):
                engine.submit(Submission(name))
