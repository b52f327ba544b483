"""A gateway that dies between any two writes: what its tools had begun, and what the next one makes of it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec import Raw, Struct

from afoot.core.call import Call, fold
from afoot.core.facts import Answer, Fact
from afoot.core.ports import Batch, Report, Run, RunnerStart
from afoot.engine.engine import Engine, Submission
from afoot.engine.live_call import Claim
from afoot.engine.recovery import recover
from afoot.store.memory import MemoryJournal
from tests.engine.fake_engine import Bench, form, offering

Effects = list[str]  # the calls whose tools have begun, in that order
Body = Callable[[Effects, Run], Awaitable[str]]
RUN, ADA = Answer("accept", Raw(b'{"decision":"run"}'), "operator"), Answer("accept", Raw(b'{"name":"Ada"}'))


class Point(Struct):
    """A moment to die: what is on record then, and what had begun."""

    batches: list[Batch]
    begun: Effects

    def calls(self) -> dict[str, Call]:
        """The calls that are on record."""
        facts: dict[str, list[Fact]] = {}
        for entry in [entry for batch in self.batches for entry in batch.entries]:
            facts.setdefault(entry.call, []).append(entry.fact)
        return {call: fold(call, told) for call, told in facts.items()}


class Dying(MemoryJournal):
    """A journal that remembers every moment at which its gateway might have died."""

    def __init__(self, point: Point) -> None:
        """It goes on from where another died."""
        super().__init__()
        for batch in point.batches:
            super().write(batch)
        self.last, self.points = Point(point.batches, point.begun.copy()), list[Point]()

    def write(self, batch: Batch) -> None:
        """The worst moment to die is right before: what has happened since the last is on no record."""
        self.points.append(Point(self.last.batches, self.last.begun.copy()))
        super().write(batch)
        kept = Batch(list(batch.entries), list(batch.samples), dict(batch.rows))
        self.last.batches = [*self.last.batches, kept]


async def acts(effects: Effects, run: Run) -> str:
    """Does it at once."""
    effects.append(run.id)
    await asyncio.sleep(1)
    return "done"


async def saves(effects: Effects, run: Run) -> str:
    """Does it in steps, and remembers them."""
    effects.append(run.id)
    for step in range(3):
        run.content(Report(checkpoint=Raw(str(step).encode())))
        run.report(step, 3, "here")
        await asyncio.sleep(1)
    return "done"


async def asks(effects: Effects, run: Run) -> str:
    """Does it, then asks."""
    effects.append(run.id)
    for key in ("first", "second"):
        await run.ask(form(key))
    await asyncio.sleep(1)
    return "done"


def offered(body: Body, effects: Effects, options: dict[str, Any]) -> Bench:
    """The tool, and what it runs on."""
    bench = Bench()
    bench.add(lambda run: body(effects, run), **options)
    if options.get("starts"):
        bench.starting = lambda tool, caller: RunnerStart("starting it", lambda: asyncio.sleep(0.5))
    return bench


async def attended(engine: Engine, cancel_after_s: float | None) -> None:
    """Answer whatever is asked, and stop what is to be stopped, until nothing lives any more."""
    engine.policy.waits, began = True, engine.clock.now()  # somebody is there, also after a restart
    while engine.calls():
        await asyncio.sleep(0.3)
        for live in engine.calls():
            for one in list(live.call.open.values()):
                engine.answer(one.id, RUN if one.kind == "approval" else ADA)
            if cancel_after_s is not None and engine.clock.now() - began > cancel_after_s:
                engine.cancel(live, "operator", "enough")


SCENES: dict[str, tuple[Body, dict[str, Any]]] = {
    "plain": (acts, {}),
    "a queue": (acts, {"concurrency": 1}),
    "an approval": (acts, {"approval": "ask"}),
    "a start": (acts, {"starts": True}),
    "a checkpoint": (saves, {}),
    "questions": (asks, {}),
}
Life = tuple[Body, dict[str, Any], float | None]


async def lived(life: Life, calls: int) -> Dying:
    """A gateway's whole life, with so many calls side by side."""
    body, options, cancel_after_s = life
    journal = Dying(Point([], []))
    async with offering(offered(body, journal.last.begun, options), journal=journal) as engine:
        for n in range(calls):
            claim = None if n % 2 else Claim(key=f"k{n}")
            engine.submit(Submission("tool", caller="operator", can_ask=True, claim=claim))
        await attended(engine, cancel_after_s)
    return journal


async def survived(life: Life, died: Point) -> Dying:
    """The life of the next gateway."""
    body, options, _ = life
    journal = Dying(died)
    async with offering(offered(body, journal.last.begun, options), journal=journal) as engine:
        await recover(engine)
        await attended(engine, None)
    return journal


def promised(before: Call) -> tuple[str, int]:
    """What the history of a call promises when its gateway dies: how it ends, and at which attempt."""
    if before.end is not None:
        return before.end.outcome, before.attempt
    if before.cancel is not None:
        return "cancelled", before.attempt
    if before.started is None:
        return "ok", 1
    return ("ok", before.attempt + 1) if before.is_safe else ("uncertain", before.attempt)


def check(died: Point, after: Point, keyed: set[str]) -> None:
    """Whether the promise was kept for every call that was on record."""
    calls = after.calls()
    for call, before in died.calls().items():
        end, times = calls[call].end, after.begun.count(call)
        assert end is not None, f"{call} was on record, and never ends"
        assert (end.outcome, calls[call].attempt) == promised(before)
        assert times <= 1 or before.is_safe, f"{call} ran twice"
        assert times >= 1 or end.outcome != "ok"
    unknown = {call for call in died.begun if call in keyed and call not in died.calls()}
    assert not unknown, "whoever repeats its key runs it a second time"


@pytest.mark.parametrize(("calls", "deaths"), [(12, 1), (1, 2)], ids=["in a crowd", "twice"])
@pytest.mark.parametrize("cancel_after_s", [None, 0.7], ids=["to its end", "stopped"])
@pytest.mark.parametrize("is_safe", [True, False], ids=["safe", "not safe"])
@pytest.mark.parametrize("scene", SCENES)
async def test_no_death_loses_a_call_or_runs_one_twice(
    scene: str, is_safe: bool, cancel_after_s: float | None, calls: int, deaths: int
) -> None:
    """U4, H1, H4: whatever was on record and whatever had begun, the promise of the history is kept."""
    body, options = SCENES[scene]
    life: Life = body, {**options, "idempotent": is_safe}, cancel_after_s
    lives = [await lived(life, calls)]
    every = lives[0].last.calls()
    keyed = {call for call, told in every.items() if told.opened.key and not is_safe}
    for _ in range(deaths):
        points = [point for journal in lives for point in [*journal.points, journal.last]]
        lives = []
        for died in points:
            lives.append(await survived(life, died))
            check(died, lives[-1].last, keyed)
        assert len(lives) > 2
