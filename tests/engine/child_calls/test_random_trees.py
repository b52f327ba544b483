"""Trees of calls by chance: whatever they do, numbers only rise and nothing is left behind."""

import asyncio
from math import isfinite

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw, Struct, json

from afoot.core.call import ProgressSeries
from afoot.core.facts import Answer, Reading, Result
from afoot.core.ports import Report, Run, Tool, Work
from afoot.engine.engine import Engine, Submission
from afoot.engine.live_call import LiveCall
from afoot.errors import AfootError, ToolError
from afoot.store.memory import MemoryJournal
from afoot.testing import run
from tests.engine.fake_engine import form, over, text

numbers = st.none() | st.integers(-5, 20).map(float)


class Plan(Struct):
    """What one call of a tree does: steps of (what, number, total, seconds), and calls below it."""

    steps: list[tuple[str, float | None, float | None, float]] = []
    children: list["Plan"] = []
    weight: float = 1.0
    at_once: bool = False
    leaves: bool = False  # does not wait for its children
    fails: bool = False


steps = st.tuples(
    st.sampled_from(["report", "report", "alive", "content", "ask", "waiting", "sleep"]),
    numbers,
    numbers,
    st.sampled_from([0.0, 0.5, 20.0, 40.0]),
)
plans = st.recursive(
    st.builds(Plan, st.lists(steps, max_size=5), weight=st.floats(0, 5), fails=st.booleans()),
    lambda inner: st.builds(
        Plan,
        st.lists(steps, max_size=4),
        st.lists(inner, max_size=3),
        st.sampled_from([0.0, 0.3, 1.0, 7.0]),
        st.booleans(),
        st.booleans(),
        st.booleans(),
    ),
    max_leaves=8,
)


class Planned:
    """A provider of one tool that does what its arguments say."""

    name = "bench"

    def tools(self) -> list[Tool]:
        return [Tool("plan", self.name, Raw(b"{}"))]

    def prepare(self, tool: str, arguments: Raw) -> Work:
        plan = json.decode(arguments, type=Plan)
        return lambda run: follow(plan, run)

    def start(self, tool: str, caller: str) -> None:
        """Nothing to start."""


async def follow(plan: Plan, run: Run) -> Result:
    """Do what the plan says."""
    waiting = [asyncio.ensure_future(below(run, one)) for one in plan.children] if plan.at_once else []
    for step in plan.steps:
        await do(run, *step)
    for one in () if plan.at_once else plan.children:
        await below(run, one)
    if not plan.leaves:
        await asyncio.gather(*waiting)
    if plan.fails:
        raise ToolError.internal("as planned")
    return text("done")


async def below(run: Run, plan: Plan) -> None:
    """A child; its failure is its own."""
    try:
        await run.call("plan", Raw(json.encode(plan)), plan.weight)
    except AfootError:
        run.alive()


async def do(run: Run, what: str, progress: float | None, total: float | None, seconds: float) -> None:
    """One step."""
    match what:
        case "report":
            run.report(progress, total, what)
        case "content":
            run.content(Report(progress, total, what, data=Raw(b"1")))
        case "alive":
            run.alive()
        case "ask":
            await run.ask(form(f"q{progress}"))
        case "waiting":
            run.waiting("sure?" if progress else None)
    await asyncio.sleep(seconds)


async def lived(plan: Plan, can_ask: bool, cancel_s: float | None) -> tuple[Engine, list[LiveCall]]:
    """Run a whole tree, somebody answering every fifth second."""
    async with Engine(MemoryJournal()) as engine:
        engine.catalog.put(Planned())
        live, seen = (
            engine.submit(Submission("plan", Raw(json.encode(plan)), can_ask=can_ask)),
            dict[str, LiveCall](),
        )
        answering = asyncio.ensure_future(answer(engine, seen))
        if cancel_s is not None:
            asyncio.get_running_loop().call_later(cancel_s, engine.cancel, live, "caller", "enough")
        await over(engine, live)
        await asyncio.sleep(6)
        answering.cancel()
        assert not engine.calls()
    return engine, list(seen.values())


async def answer(engine: Engine, seen: dict[str, LiveCall]) -> None:
    """Answer what is open, from above and from below in turn."""
    for turn in range(10_000):
        for one in engine.calls():
            seen[one.call.id] = one
        asked = [name for one in engine.calls() for name, q in one.call.open.items() if q.kind != "below"]
        if asked and turn % 10 == 0:
            engine.answer(asked[0 if turn % 20 else -1], Answer("accept", Raw(b"{}")))
        await asyncio.sleep(0.5)


@settings(max_examples=150)
@given(plans, st.booleans(), st.none() | st.sampled_from([0.1, 15.0, 33.0]))
def test_a_tree_of_calls_leaves_nothing_behind(plan: Plan, can_ask: bool, cancel_s: float | None) -> None:
    """P8, T4: no live call, no timer, no open question, no follower, no waiter; every call has its end."""
    engine, seen = run(lived(plan, can_ask, cancel_s))
    assert not engine.slots.holders and not engine.deadlines.deferred
    for live in seen:
        assert live.call.end is not None and live.call.released is not None
        assert live.timer is None and not live.call.open and not live.waiters
        assert not live.followers and not live.watchers
        assert live.below is None or not (live.below.children or live.below.shares)


async def watched(plan: Plan) -> list[Reading]:
    """Every reading of the root of a tree."""
    async with Engine(MemoryJournal()) as engine:
        engine.catalog.put(Planned())
        live = engine.submit(Submission("plan", Raw(json.encode(plan))))
        answering, items = asyncio.ensure_future(answer(engine, {})), list[Reading]()
        with engine.follow(live, lambda: None, 0) as follower:
            await over(engine, live)
            items += [item for item in follower.take().items if isinstance(item, Reading)]
        answering.cancel()
    return items


@settings(max_examples=150)
@given(plans)
def test_what_a_parent_shows_only_rises(plan: Plan) -> None:
    """P8, P4: the roll-up never falls, stays finite, and no wire number is sent twice."""
    readings = run(watched(plan))
    rolled = [one for one in readings if one.source == "below"]
    numbers = [one.progress for one in rolled if one.progress is not None]
    assert numbers == sorted(numbers) and all(isfinite(one) for one in numbers)
    assert all(one.total is None or one.progress is None or one.progress < one.total for one in rolled[:-1])
    assert all(
        one.total is not None or one.progress == 0 for one in rolled
    )  # none: all of them weigh nothing
    series = ProgressSeries()
    sent = [series.rise(one)[0] for one in readings]
    assert sent == sorted(set(sent))
