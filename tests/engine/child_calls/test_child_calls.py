"""Calls below calls: budgets, what is heard above, what it counts for, and how they end together."""

import asyncio

import pytest

from afoot.core.facts import Limits, Reading
from afoot.core.ports import Report, Run
from afoot.errors import ToolError
from tests.engine.child_calls.nested_tools import NOTHING, after, calling, child, counting, forest, root
from tests.engine.fake_engine import over, readings, took, watched


async def test_a_child_gets_what_its_parent_has_left() -> None:
    """C3: the ceiling above is the ceiling below; its own, if that is lower."""

    async def body(run: Run) -> str:
        for _ in range(4):
            await asyncio.sleep(25)
            run.alive()
        await run.call("child", NOTHING, 1.0)
        return "done"

    async with forest(root=body, child=counting(1)) as engine:
        live = root(engine)
        await asyncio.sleep(100.5)
        assert child(engine).call.opened.limits.ceiling_s == 200.0
        await over(engine, live)
    short = counting(1), {"limits": Limits(ceiling_s=7.0)}
    async with forest(root=calling("child"), child=short) as engine:
        live = root(engine)
        await asyncio.sleep(0.5)
        assert child(engine).call.opened.limits.ceiling_s == 7.0


async def test_the_budget_is_what_is_left_on_the_clock() -> None:
    """C3, C6: human time is not counted."""
    seen = list[tuple[float | None, float]]()

    async def body(run: Run) -> str:
        seen.append(run.budget())
        await asyncio.sleep(20)
        run.waiting("sure?")
        await asyncio.sleep(100)
        seen.append(run.budget())
        run.waiting(None)
        await asyncio.sleep(10)
        seen.append(run.budget())
        return "done"

    async with forest(root=body) as engine:
        await over(engine, root(engine, idle_s=25.0, ceiling_s=200.0))
    assert [(idle, round(left, 3)) for idle, left in seen] == [(25.0, 200.0), (25.0, 180.0), (25.0, 170.0)]


async def test_a_roll_up_counts_children_by_their_weight() -> None:
    """P8, P14: a child of weight 3 is three quarters; the total is there from the beginning to the end."""
    body = calling("child", "child", weights=(3.0, 1.0), at_once=True)
    async with forest(root=body, child=counting(2)) as engine:
        items = await watched(engine, root(engine), 0)
    seen = [(item.progress, item.total, item.message) for item in items if isinstance(item, Reading)]
    assert seen == [
        (1.5, 4.0, "step 1"), (2.0, 4.0, "step 1"), (3.5, 4.0, "step 2"), (4.0, 4.0, "step 2"),
    ]  # fmt: skip


async def test_children_one_after_the_other_never_show_a_whole_before_the_end() -> None:
    """P8, P14: who calls one tool after the other knows the end; the roll-up waits for it."""
    async with forest(root=calling("child", "child"), child=counting(2)) as engine:
        items = await watched(engine, root(engine), 0)
    numbers = [(item.progress, item.total) for item in items if isinstance(item, Reading)]
    assert numbers == [(0.5, 1.0), (0.5, 1.0), (1.0, 2.0), (1.5, 2.0), (1.5, 2.0), (2.0, 2.0)]


async def test_a_call_that_fails_never_shows_a_whole() -> None:
    """P8, P14: all that it called is done, and it is not."""

    async def failing(run: Run) -> str:
        await run.call("child", NOTHING, 1.0)
        raise ToolError.internal("boom")

    async with forest(root=failing, child=counting(2)) as engine:
        live = root(engine)
        await over(engine, live)
    assert live.call.end is not None and live.call.end.failure is not None
    last = live.call.end.failure.last
    assert last is not None and (last.progress, last.total, last.message) == (0.5, 1.0, "step 2")


async def test_a_child_that_ends_counts_as_done_whatever_its_end() -> None:
    """P8: one that reported nothing, or failed, still was its share."""

    async def failing(run: Run) -> str:
        await asyncio.sleep(1)
        raise ToolError.internal("boom")

    async def silent(run: Run) -> str:
        await asyncio.sleep(1)
        return "done"

    async def body(run: Run) -> str:
        await after(run, "failing", [])
        await run.call("silent", NOTHING, 1.0)
        return "done"

    async with forest(root=body, failing=failing, silent=silent) as engine:
        assert readings(await watched(engine, root(engine), 0)) == [1.0, 2.0]


async def test_a_child_that_goes_back_takes_nothing_back() -> None:
    """P8: the roll-up only rises, and counts again from where the child was."""

    async def back(run: Run) -> str:
        for n in (8, 2, 5, 9):
            await asyncio.sleep(1)
            run.report(n, 10, None)
        return "done"

    async with forest(root=calling("back"), back=back) as engine:
        assert readings(await watched(engine, root(engine), 0)) == [0.8, 0.8, 0.8, 0.9, 1.0]


async def test_the_numbers_of_the_call_itself_win() -> None:
    """P8: for good, also behind a report that is only a message."""

    async def body(run: Run) -> str:
        run.report(10, 100, None)
        run.report(None, None, "now the child")
        await run.call("child", NOTHING, 1.0)
        run.report(50, 100, None)
        run.report(None, None, "and again")
        await run.call("child", NOTHING, 1.0)
        return "done"

    async with forest(root=body, child=counting(2)) as engine:
        items = await watched(engine, root(engine), 0)
    assert readings(items)[-2:] == [50, None]
    assert all(item.source == "tool" for item in items if isinstance(item, Reading)) is False


async def test_numbers_told_with_content_win_too() -> None:
    """P7, P8: a report with data is a report."""

    async def body(run: Run) -> str:
        task = asyncio.ensure_future(run.call("child", NOTHING, 1.0))
        await asyncio.sleep(1.5)
        run.content(Report(7.0, 9.0, data=NOTHING))
        await task
        return "done"

    async with forest(root=body, child=counting(3)) as engine:
        live = root(engine)
        assert readings(await watched(engine, live, 0)) == [0.333333]
    assert live.call.latest and live.call.latest.progress == 7.0


async def test_the_content_of_a_child_counts_at_once() -> None:
    """P7, P8: its numbers are not counted only with its next word."""

    async def body(run: Run) -> str:
        run.content(Report(1.0, 4.0, "first", data=NOTHING))
        await asyncio.sleep(10)
        return "done"

    async with forest(root=calling("child"), child=body) as engine:
        live = root(engine)
        await asyncio.sleep(5)
        assert live.call.latest and (live.call.latest.progress, live.call.latest.message) == (0.25, "first")


async def test_a_child_without_a_total_is_heard_by_its_message() -> None:
    """P8: nobody knows how much that is, but it is seen to move."""
    async with forest(root=calling("child"), child=counting(3, total=False)) as engine:
        items = await watched(engine, root(engine), 0)
    seen = [(item.progress, item.message) for item in items if isinstance(item, Reading)]
    assert seen == [(0.0, "step 1"), (0.0, "step 2"), (0.0, "step 3"), (1.0, "step 3")]


async def test_a_grandchild_counts_all_the_way_up() -> None:
    """P8: half of the child's half is a quarter above, and never sinks where another joins."""
    middle = calling("child", "child", at_once=True)
    async with forest(root=calling("middle"), middle=middle, child=counting(2)) as engine:
        items = await watched(engine, root(engine), 0)
    assert readings(items) == [0.25, 0.5, 0.75, 1.0]


@pytest.mark.parametrize("sign", ["report", "alive", "content"])
async def test_a_sign_of_life_of_a_descendant_re_arms_every_clock_above(sign: str) -> None:
    """P8, C1: the parents are silent for as long as they like; nothing extends a ceiling."""

    async def body(run: Run) -> str:
        for n in range(100):
            await asyncio.sleep(25)
            {
                "report": lambda n=n: run.report(n, None, None),
                "alive": run.alive,
                "content": lambda: run.content(Report(data=NOTHING)),
            }[sign]()
        return "done"

    async with forest(root=calling("middle"), middle=calling("child"), child=body) as engine:
        live = root(engine)
        await over(engine, live)
        assert live.call.end and live.call.end.failure
        assert (live.call.end.failure.clock, took(live)) == ("ceiling", 300.0)
        assert (live.call.readings > 0) is (sign == "report")
