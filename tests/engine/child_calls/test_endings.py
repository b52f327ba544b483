"""Calls below calls: how they end, together and apart, and what is told of them to those who follow."""

import asyncio
from math import inf, nan

import pytest

from afoot.core.call import State
from afoot.core.facts import CancelRequested, Limits
from afoot.core.ports import Run
from afoot.engine.child_calls import MAX_CHANGES_AT_ONCE, MAX_DEPTH
from afoot.engine.engine import Submission
from afoot.engine.live_call import LiveCall
from afoot.errors import Refused, ToolError, UnknownName
from tests.engine.child_calls.nested_tools import after, calling, child, counting, forest, root, told
from tests.engine.fake_engine import facts, over, took


async def test_a_silent_child_ends_at_its_own_limit_and_its_parent_hears_of_it() -> None:
    """C1, P8: the child's clock is the later one only where its limit is longer."""
    errors = list[BaseException]()

    async def body(run: Run) -> str:
        await asyncio.sleep(10)
        await after(run, "child", errors)
        return "went on"

    async def silent(run: Run) -> str:
        await asyncio.sleep(1000)
        return "done"

    async with forest(root=body, child=(silent, {"limits": Limits(idle_s=15.0)})) as engine:
        live = await over(engine, root(engine))
    assert (told(live), took(live)) == ("ok", 25.0)
    [error] = errors
    assert isinstance(error, ToolError) and (error.category, error.code) == ("timeout", "idle_limit")


@pytest.mark.parametrize(
    ("error", "category"),
    [
        (ToolError.rate_limited("slow down", retry_after=3.0), "rate_limit"),
        (ToolError.not_found("no such file"), "not_found"),
        (ValueError("boom"), "internal"),
    ],
)
async def test_a_failed_child_raises_with_its_category(error: Exception, category: str) -> None:
    """P8, E1: message, code and when to try again come up; uncaught, the parent fails the same way."""

    async def failing(run: Run) -> str:
        raise error

    async with forest(root=calling("child"), child=failing) as engine:
        live = await over(engine, root(engine))
    assert live.call.end and live.call.end.failure
    failure = live.call.end.failure
    assert (failure.category, failure.retry_after_s) == (category, getattr(error, "retry_after", None))
    assert failure.message.startswith("child: ") and str(error) in failure.message


async def test_what_cannot_be_called_is_told_where_it_was_called() -> None:
    """E5: an unknown tool, or a gateway that closes."""
    errors = list[BaseException]()

    async def body(run: Run) -> str:
        await after(run, "chlid", errors)
        return "went on"

    async with forest(root=body, child=counting(1)) as engine:
        assert told(await over(engine, root(engine))) == "ok"
    assert isinstance(errors[0], UnknownName) and "nearest: child" in str(errors[0])
    assert not isinstance(errors[0], Refused)


async def test_cancelling_a_call_cancels_everything_below_it() -> None:
    """X1, P8: with a reason that says so; the child has its grace within its parent's."""
    seen = list[LiveCall]()
    async with forest(root=calling("middle"), middle=calling("child"), child=counting(1000, 10.0)) as engine:
        live = root(engine)
        await asyncio.sleep(15)
        seen += engine.calls()
        engine.cancel(live, "operator", "enough")
        await over(engine, live)
        await asyncio.sleep(0.1)
        assert not engine.calls()
    assert [told(one) for one in seen] == ["cancelled"] * 3
    assert [facts(one, CancelRequested)[0].by for one in seen] == ["operator", "parent", "parent"]


async def test_a_call_that_ends_takes_its_children_with_it() -> None:
    """P8: also those that nobody waited for."""
    tasks = list[object]()

    async def body(run: Run) -> str:
        tasks.append(asyncio.ensure_future(after(run, "child", [])))
        await asyncio.sleep(5)
        return "done"

    async with forest(root=body, child=counting(100)) as engine:
        live = root(engine)
        await asyncio.sleep(3)
        below = child(engine)
        await over(engine, live)
        await over(engine, below)
        assert (told(live), told(below), took(below)) == ("ok", "cancelled", 5.0)
        assert not engine.calls()


async def test_nothing_is_called_by_a_call_that_is_to_stop() -> None:
    """X1: a clean-up in its grace may report, but opens no call."""
    errors = list[BaseException]()

    async def body(run: Run) -> str:
        try:
            await asyncio.sleep(1000)
        finally:
            await after(run, "child", errors)
        return "done"

    async with forest(root=body, child=counting(1)) as engine:
        live = root(engine)
        await asyncio.sleep(1)
        engine.cancel(live, "caller", "enough")
        await over(engine, live)
    [error] = errors
    assert isinstance(error, ToolError) and (error.category, error.message) == ("cancelled", "enough")


async def test_a_tool_that_calls_itself_for_ever_is_stopped() -> None:
    """P8: calls below one another have a bound."""
    async with forest(root=calling("root")) as engine:
        live = root(engine)
        await over(engine, live)
        assert not engine.calls()
    assert live.call.end and live.call.end.failure and live.call.end.failure.category == "refused"
    assert f"over {MAX_DEPTH} calls below one another" in live.call.end.failure.message


async def test_only_a_caller_itself_puts_calls_below_its_own() -> None:
    """S3, P8: another caller's call, or one that is unknown here, is no parent."""
    async with forest(root=counting(10), child=counting(2)) as engine:
        live = root(engine, caller="a")
        stranger = root(engine, "child", caller="b", parent=live.call.id)
        lost = root(engine, "child", caller="a", parent="elsewhere")
        ours = root(engine, "child", caller="a", parent=live.call.id)
        assert [one.parent is live for one in (stranger, lost, ours)] == [False, False, True]
        assert lost.call.opened.parent == "elsewhere"


@pytest.mark.parametrize(("weight", "counts"), [(0.0, 0.0), (2.5, 2.5), (-1.0, 1.0), (nan, 1.0), (inf, 1.0)])
async def test_a_weight_that_is_no_weight_counts_as_one(weight: float, counts: float) -> None:
    """P8: whatever a tool says, the roll-up rises and the history can be read."""
    async with forest(root=calling("child", weights=(weight,)), child=counting(2)) as engine:
        live = root(engine)
        await asyncio.sleep(1.5)
        below = child(engine)
        assert below.call.opened.weight == counts
        await over(engine, live)
        assert (await engine.journal.facts(below.call.id))[0].seq == 1
    assert live.call.latest and live.call.latest.progress == counts


async def test_who_follows_a_call_is_told_which_calls_below_have_changed() -> None:
    """P8: each once, with its state; those further down say what they are below of."""
    async with forest(root=calling("middle"), middle=calling("child"), child=counting(3)) as engine:
        live = root(engine)
        told = dict[str, int]()
        assert engine.child_calls.changed(live, told) == []
        await asyncio.sleep(1.5)
        middle, below = sorted(engine.child_calls.changed(live, told), key=lambda one: one.tool, reverse=True)
        assert (middle.tool, middle.state, middle.parent) == ("middle", "running", None)
        assert middle.progress == 0.333333
        assert (below.tool, below.parent, below.message) == ("child", middle.id, "step 1")
        assert engine.child_calls.changed(live, told) == []
        await over(engine, live)
        ends = {one.tool: (one.state, one.outcome) for one in engine.child_calls.changed(live, told)}
        assert ends == dict.fromkeys(("child", "middle"), ("finished", "ok"))


async def test_at_most_fifty_children_are_told_of_at_once_and_nobody_is_forgotten() -> None:
    """P8: while all of them change all the time, those come first that waited longest."""
    body = calling(*["child"] * 120, at_once=True)
    async with forest(root=body, child=counting(5)) as engine:
        live, told, seen = root(engine), dict[str, int](), list[str]()
        await asyncio.sleep(0.5)
        for _ in range(3):
            some = engine.child_calls.changed(live, told)
            assert len(some) == MAX_CHANGES_AT_ONCE
            seen += [one.id for one in some]
            await asyncio.sleep(1)
        assert len(set(seen)) == 120 and len(set(seen[:100])) == 100
        await over(engine, live)


async def test_a_call_that_calls_nobody_has_nothing_below_it() -> None:
    """P8: an ordinary call carries none of this."""
    async with forest(root=counting(1)) as engine:
        live = await over(engine, engine.submit(Submission("root")))
        assert live.below is None and live.parent is None and live.call.state is State.FINISHED
