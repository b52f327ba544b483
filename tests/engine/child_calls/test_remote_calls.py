"""Calls at a gateway behind this one, below the call that led to them."""

import asyncio

from afoot.core.facts import ChildSummary
from afoot.core.ports import Report, Run
from tests.engine.child_calls.nested_tools import calling, forest, root
from tests.engine.fake_engine import over

RUNS = ChildSummary("r1", "knit", "running", None, 1.0, 4.0, "row 1")
DEEPER = ChildSummary("r2", "sew", "running", parent="r1")
ENDED = ChildSummary("r1", "knit", "finished", "ok", 4.0, 4.0, "row 4")


async def upstream(run: Run) -> str:
    """A tool of a gateway behind this one, which tells of calls there."""
    await asyncio.sleep(1)
    run.content(Report(1.0, 4.0, "a quarter", children=(RUNS, DEEPER)))
    await asyncio.sleep(1)
    run.content(Report(4.0, 4.0, children=(ENDED,)))
    await asyncio.sleep(1)
    return "done"


async def test_calls_behind_another_gateway_are_below_the_call_that_led_to_them() -> None:
    """P8: its followers hear of each change, and so do those of the calls above it."""
    async with forest(root=calling("upstream"), upstream=upstream) as engine:
        live, told = root(engine), dict[str, int]()
        await asyncio.sleep(1.5)
        found = {one.id: one for one in engine.child_calls.changed(live, told)}
        led = next(one for one in found.values() if one.tool == "upstream")
        assert (found["r1"].tool, found["r1"].progress, found["r1"].parent) == ("knit", 1.0, led.id)
        assert found["r2"].parent == "r1"
        below = engine[led.id]
        assert below.call.remote == {"r1": RUNS, "r2": DEEPER}
        assert {one.id: one.parent for one in engine.child_calls.changed(below, {})} == {
            "r1": None,
            "r2": "r1",
        }
        await asyncio.sleep(1)
        assert [(one.id, one.outcome) for one in engine.child_calls.changed(below, {}) if one.outcome] == [
            ("r1", "ok")
        ]
        await over(engine, live)
    assert live.call.latest is not None and live.call.latest.progress == 1.0, "all of it, by weight"


async def test_the_history_has_them() -> None:
    """P8, H1: in the facts of the call, the newest state of each."""
    async with forest(root=upstream) as engine:
        live = root(engine)
        await over(engine, live)
    assert live.call.remote["r1"] == ENDED and live.call.contents == 2


async def test_no_call_below_is_left_running_at_the_end() -> None:
    """P8: one that nobody told the end of is stopped with the call above it."""
    async with forest(root=upstream) as engine:
        live, told = root(engine), dict[str, int]()
        await asyncio.sleep(2.5)
        engine.child_calls.changed(live, told)
        await over(engine, live)
        rest = engine.child_calls.rest(live, told)
        assert [(one.id, one.state) for one in rest] == [("r2", "cancelling")]
