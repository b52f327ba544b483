"""Tools of servers that are not ours: their silence ends nothing until they have reported once."""

import asyncio

import pytest
from msgspec import Raw

from afoot.config.settings import Server, ToolSettings
from afoot.core.facts import Answer, Limits
from afoot.core.ports import Report, Run
from afoot.engine.catalog import EffectiveSettings
from afoot.engine.engine import Submission
from afoot.engine.live_call import LiveCall
from tests.engine.fake_engine import Body, called, engine_of, form, over, took

PATIENT = Limits(patient=True)


def saying(*steps: object) -> Body:
    """A tool that reports a number, sends a heartbeat ("alive") or content, each after so many seconds."""

    async def body(run: Run) -> str:
        for step in steps:
            match step:
                case float():
                    await asyncio.sleep(step)
                case int():
                    run.report(step, None, None)
                case "content":
                    run.content(Report(data=Raw(b"1")))
                case "alive":
                    run.alive()
                case "log":
                    run.log("still here", "info", "")
                case "ask":
                    await run.ask(form("q"))
        return "done"

    return body


def ended(live: LiveCall) -> tuple[str, float]:
    """The clock that ended it, or ok; and when."""
    assert live.call.end is not None
    failure = live.call.end.failure
    return (failure.clock or failure.code) if failure else "ok", took(live)


@pytest.mark.parametrize(
    ("body", "clock", "at"),
    [
        (saying(299.0), "ok", 299.0),
        (saying(1000.0), "ceiling", 300.0),
        (saying(100.0, 1, 29.0), "ok", 129.0),
        (saying(100.0, 1, 31.0), "idle", 130.0),
        (saying(1, 31.0), "idle", 30.0),
        (saying(100.0, "content", 31.0), "idle", 130.0),
        (saying(100.0, 1, 20.0, 2, 31.0), "idle", 150.0),
        (saying(100.0, "alive", 100.0), "ok", 200.0),
        (saying(100.0, "log", 100.0), "ok", 200.0),
        (saying(100.0, 1, 20.0, "alive", 29.0), "ok", 149.0),
        (saying(280.0, 1, 31.0), "ceiling", 300.0),
    ],
    ids=[
        "never a report", "never an end", "a report, and just in time", "a report, and silence",
        "a report at once", "content counts", "two reports", "a heartbeat is no report", "nor is a log line",
        "a heartbeat after a report", "the ceiling holds",
    ],
)  # fmt: skip
async def test_silence_counts_from_the_first_report_on(body: Body, clock: str, at: float) -> None:
    """C1: no idle limit until the tool has reported once, then 30 s from there."""
    assert ended(await called(body, limits=PATIENT)) == (clock, at)


async def test_a_tool_that_reported_in_an_earlier_call_is_known_to_report() -> None:
    """C1: in this call or in history: the second call is held to 30 s from its start."""
    async with engine_of(saying(1, 10.0), limits=PATIENT) as engine:
        assert ended(await over(engine, engine.submit(Submission("tool")))) == ("ok", 10.0)
        assert engine.reporters == {"bench/tool"}
        again = engine.submit(Submission("tool"))
        assert not again.call.opened.limits.patient
        await over(engine, again)
    async with engine_of(saying(100.0), limits=PATIENT) as engine:
        engine.reporters.add("bench/tool")
        assert ended(await over(engine, engine.submit(Submission("tool")))) == ("idle", 30.0)


async def test_a_tool_that_never_reported_stays_unknown() -> None:
    """C1: a server that works today still works tomorrow."""
    async with engine_of(saying(40.0, "alive"), limits=PATIENT) as engine:
        for _ in range(2):
            assert ended(await over(engine, engine.submit(Submission("tool")))) == ("ok", 40.0)
        assert not engine.reporters


@pytest.mark.parametrize(
    "terms",
    [
        EffectiveSettings(tools={"tool": ToolSettings(idle_s=12.0)}),
        EffectiveSettings(tools={"bench/*": ToolSettings(idle_s=12.0)}),
        EffectiveSettings(servers={"bench": Server(idle_s=12.0)}),
    ],
)
async def test_who_sets_an_idle_limit_means_it_from_the_start(terms: EffectiveSettings) -> None:
    """C1, C3: a setting for the tool or the server ends the patience."""
    assert ended(await called(saying(100.0), limits=PATIENT, terms=terms)) == ("idle", 12.0)


async def test_a_setting_of_another_limit_leaves_the_patience() -> None:
    """C1: only the idle limit is about silence."""
    terms = EffectiveSettings(servers={"bench": Server(ceiling_s=50.0)})
    assert ended(await called(saying(100.0), limits=PATIENT, terms=terms)) == ("ceiling", 50.0)


async def test_a_callers_own_idle_limit_holds_from_the_first_report_too() -> None:
    """C3: a call may lower the limit; what the tool is like, it cannot know."""
    async with engine_of(saying(50.0, 1, 20.0), limits=PATIENT) as engine:
        live = engine.submit(Submission("tool", idle_s=10.0))
        assert ended(await over(engine, live)) == ("idle", 60.0)


async def test_an_answer_is_no_report() -> None:
    """C1, C6: a tool that asks has still said nothing of its progress."""
    async with engine_of(saying("ask", 100.0), limits=PATIENT) as engine:
        live = engine.submit(Submission("tool"))
        await asyncio.sleep(500)
        engine.answer(f"{live.call.id}.1", Answer("accept", Raw(b"{}")))
        assert ended(await over(engine, live)) == ("ok", 600.0)
