"""Somebody is asked further down, out of our sight: the clocks stand still here too."""

import asyncio

import pytest
from msgspec import Raw

from afoot.core.call import State
from afoot.core.facts import Answer, Asked
from afoot.core.ports import Run
from afoot.errors import ToolError
from tests.engine.child_calls.nested_tools import calling, child, forest, root
from tests.engine.fake_engine import Body, facts, over, took

YES = Answer("accept", Raw(b'{"n":1}'))


def waits(*steps: object) -> Body:
    """A tool whose server says that it waits (a text), that it waits no more (None), or nothing."""

    async def body(run: Run) -> str:
        for step in steps:
            if isinstance(step, float):
                await asyncio.sleep(step)
            else:
                assert step is None or isinstance(step, str)
                run.waiting(step)
        return "done"

    return body


@pytest.mark.parametrize(
    ("body", "clock", "at"),
    [
        (waits(20.0, "sure?", 500.0, None, 20.0), None, 540.0),
        (waits(20.0, "sure?", 500.0, None, 31.0), "idle", 550.0),
        (waits("sure?", 300.0, "still?", 300.0, None), None, 600.0),
        (waits("sure?", 1000.0), "answer", 605.0),
        (waits(None, 20.0, None), None, 20.0),
        (waits("a", 100.0, None, "b", 600.0, None, 10.0), None, 710.0),
    ],
    ids=["off the clock", "and on again", "said twice", "not for ever", "never waited", "twice"],
)
async def test_what_is_asked_further_down_stops_the_clocks_too(
    body: Body, clock: str | None, at: float
) -> None:
    """C3, C6: out of our sight somebody is asked; bounded by answer_s and a grace more."""
    async with forest(root=body) as engine:
        live = await over(engine, root(engine))
        assert not engine.calls() and live.timer is None
    assert live.call.end and took(live) == at
    assert (live.call.end.failure.clock if live.call.end.failure else None) == clock


async def test_what_waits_further_down_can_be_answered_only_there() -> None:
    """C3: nobody here knows what would be an answer."""
    async with forest(root=calling("child"), child=waits("sure?", 50.0, None)) as engine:
        live = root(engine, can_ask=True)
        await asyncio.sleep(1)
        for one in (live, child(engine)):
            [(name, asked)] = one.call.open.items()
            assert (asked.kind, asked.message) == ("below", "sure?")
            with pytest.raises(ToolError, match="can only be answered there"):
                engine.answer(name, YES)
        await over(engine, live)
    assert live.call.end and (live.call.end.outcome, took(live)) == ("ok", 50.0)


async def test_waiting_is_said_in_vain_before_the_start_and_after_the_end() -> None:
    """C3: late words change nothing."""
    runs = list[Run]()

    async def body(run: Run) -> str:
        runs.append(run)
        return "done"

    async with forest(root=body) as engine:
        live = await over(engine, root(engine))
        runs[0].waiting("sure?")
        runs[0].waiting(None)
    assert not facts(live, Asked) and live.call.state is State.FINISHED


async def test_questions_below_are_bounded() -> None:
    """G3: a server that says for ever that it waits fills no history."""
    async with forest(root=waits(*["sure?", None] * 200)) as engine:
        engine.questions.max_questions = 10
        live = await over(engine, root(engine))
    assert len(facts(live, Asked)) == 10 and live.call.end and live.call.end.outcome == "ok"
