"""What is expected of a call that runs, as it is shown and sent."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from msgspec import Raw

from afoot.config import Settings
from afoot.core.facts import Answer, Limits
from afoot.core.ports import Query, Run
from afoot.engine.engine import Submission
from afoot.gateway import Gateway
from afoot.observe.eta import Eta
from afoot.serve.calls import find
from afoot.serve.forecast import forecast, foreseen, outlook
from afoot.serve.site import Site
from afoot.testing import scripted
from tests.e2e.gateway import until
from tests.engine.double import form
from tests.serve.api import Api
from tests.serve.double import (
    YES,
    Tape,
    begin,
    faked,
    nap,
    only,
    replies,
    site_of,
    talk,
    wanted,
)


async def hundred(run: Run) -> str:
    """A tool that does one of a hundred a second."""
    for number in range(1, 101):
        await asyncio.sleep(1)
        run.report(number, 100, f"page {number}")
    return "done"


async def five_then_alive(run: Run) -> str:
    """A tool that advances every fourth second five times, then only lives."""
    for number in range(1, 6):
        await asyncio.sleep(4)
        run.report(number, 10, None)
    for _ in range(30):
        await asyncio.sleep(1)
        run.alive()
    return "done"


@faked
async def test_a_call_tells_how_long_it_takes_from_its_own_pace() -> None:
    """P9: not before three reports and five seconds; then a range that holds the truth, and its rate."""
    async with site_of(hundred) as site:
        engine = site.engine
        live = engine.submit(Submission("tool"))
        await asyncio.sleep(4.5)
        assert foreseen(engine, live, engine.clock.now()).eta is None
        await asyncio.sleep(16)
        shown = foreseen(engine, live, engine.clock.now())
        assert shown.eta is not None and shown.eta.low_s < 79.5 < shown.eta.high_s
        assert shown.rate == pytest.approx(1.0, rel=0.1)
        assert [one.eta for one in await find(site, Query())] == [shown.eta]


@faked
async def test_a_silent_call_is_foreseen_from_earlier_runs() -> None:
    """P9: five of them; none before, and none of another tool."""
    async with site_of(nap) as site:
        engine = site.engine
        for run in range(5):
            live = engine.submit(Submission("tool"))
            assert forecast(engine, live, engine.clock.now()) is None, run
            await engine.idle(20)
        live = engine.submit(Submission("tool"))
        await asyncio.sleep(4)
        assert forecast(engine, live, engine.clock.now()) == Eta(6.0, 6.0)


@faked
async def test_nothing_is_foreseen_of_a_call_that_waits_or_is_over() -> None:
    """P9: nobody knows how long a person takes."""

    async def asks(run: Run) -> str:
        await hundred(run)
        await run.ask(form("sure"))
        return "done"

    async with site_of(asks) as site:
        engine = site.engine
        live = engine.submit(Submission("tool"))
        await asyncio.sleep(99.5)
        assert outlook(engine, live, engine.clock.now()).eta is not None
        await asyncio.sleep(1)
        assert live.call.open and outlook(engine, live, engine.clock.now()).eta is None
        engine.cancel(live, "operator", "enough")
        assert outlook(engine, live, engine.clock.now()).rate is None


async def asks_and_works(run: Run) -> str:
    """A tool that asks, and works on for long."""
    await run.ask(form("sure"))
    await asyncio.sleep(1000)
    return "done"


@faked
async def test_a_call_whose_caller_asks_its_user_is_not_detached() -> None:
    """V1, X3, A5: nor is it when the operator was faster; it is once its user has had the time to answer."""
    limits = Limits(idle_s=2000, ceiling_s=2000, answer_s=60)
    async with site_of(asks_and_works, limits=limits) as site:
        await talk(site, wanted())
        live = only(site)
        await asyncio.sleep(10)
        assert (live.attached, is_detached(site)) == (0, False)
        site.engine.answer(next(iter(live.call.open)), Answer("accept", Raw(b"{}"), "operator"))
        await asyncio.sleep(10)
        assert not live.call.open and not is_detached(site)
        await asyncio.sleep(41)
        assert is_detached(site)


@pytest.mark.parametrize("by", ["operator", "local"])
@faked
async def test_a_call_whose_caller_came_back_with_an_answer_and_left_is_detached(by: str) -> None:
    """V1, X3: whoever answered first."""
    limits = Limits(idle_s=2000, ceiling_s=2000)
    async with site_of(asks_and_works, limits=limits, on_disconnect="detach") as site:
        state = (await talk(site, wanted())).state
        if by == "operator":
            question = next(iter(only(site).call.open))
            site.engine.answer(question, Answer("accept", Raw(b"{}"), "operator"))
        tape = Tape()
        back = begin(site, wanted(state=state, answers=replies(sure=YES)), tape)
        await asyncio.sleep(10)
        assert not is_detached(site)
        tape.leave()
        await back
        assert is_detached(site)


def is_detached(site: Site) -> bool:
    """Whether the one call that lives is shown as one that nobody waits for."""
    return outlook(site.engine, only(site), site.engine.clock.now()).detached


@faked
async def test_a_call_stalls_by_its_own_usual_gap() -> None:
    """C5, P9: four times what it usually takes between two advances; and it is shown as such."""
    async with site_of(five_then_alive) as site:
        live = site.engine.submit(Submission("tool"))
        await asyncio.sleep(35.5)
        assert not foreseen(site.engine, live, site.engine.clock.now()).stalled
        await asyncio.sleep(1)
        assert foreseen(site.engine, live, site.engine.clock.now()).stalled


@faked
async def test_a_pause_that_is_usual_is_no_stall() -> None:
    """C5: bursts and pauses make a mean that says little; most of its gaps say more."""

    async def bursts(run: Run) -> str:
        number = 0
        for _ in range(5):
            for _ in range(2):
                number += 1
                run.report(number, None, None)
                await asyncio.sleep(1)
            await asyncio.sleep(10)
            run.alive()
            await asyncio.sleep(10)
        return "done"

    async with site_of(bursts) as site:
        live = site.engine.submit(Submission("tool"))
        await asyncio.sleep(4 * 22 + 20)
        assert live.call.latest is not None and site.engine.clock.now() - live.call.latest.at > 15
        assert not outlook(site.engine, live, site.engine.clock.now()).stalled


@faked
async def test_progress_carries_how_long_it_still_takes() -> None:
    """P9: in `_meta`, at most once a second, once the call has run for five; the truth is in the range."""

    async def fast(run: Run) -> str:
        for number in range(1, 401):
            await asyncio.sleep(0.05)
            run.report(number, 400, None)
        return "done"

    async with site_of(fast) as site:
        tape = await talk(site, wanted(token="t"))
    told = [
        (at, sent["params"]["_meta"]["dev.afoot/progress"]["eta_s"])
        for at, sent in tape.of("notifications/progress")
        if "eta_s" in sent["params"].get("_meta", {}).get("dev.afoot/progress", {})
    ]
    begun = told[0][0]
    assert 5.0 <= begun < 5.5 and 13 <= len(told) <= 16 < len(tape.progress)
    assert all(low <= 20.0 - at <= high for at, (low, high) in told[:-1])


@faked
async def test_a_notice_of_a_silent_call_carries_it_too() -> None:
    """P9, C6: from earlier runs."""

    async def long(run: Run) -> str:
        await asyncio.sleep(25)
        return "done"

    async with site_of(long) as site:
        for _ in range(5):
            site.engine.submit(Submission("tool"))
        await site.engine.idle(60)
        tape = await talk(site, wanted(token="t"))
    [notice] = tape.progress
    assert notice["_meta"]["dev.afoot/progress"]["eta_s"] == [10.0, 10.0]


@faked
async def test_a_short_call_is_told_nothing() -> None:
    """P9: a range is not for what is over at once."""

    async def short(run: Run) -> str:
        for number in range(1, 5):
            await asyncio.sleep(1)
            run.report(number, 4, None)
        return "done"

    async with site_of(short) as site:
        tape = await talk(site, wanted(token="t"))
        assert not site.engine.calls()
    assert "eta_s" not in json.dumps(tape.progress)


@faked
async def test_what_tools_took_before_is_known_from_the_history(tmp_path: Path) -> None:
    """P9: a gateway that starts again still knows how long they take."""
    settings = Settings(store=str(tmp_path / "calls.db"))
    tool = scripted(("sleep", 3.0), ("return", "done"), name="step")
    async with Gateway(tool, settings=settings) as gateway:
        for _ in range(2):
            await gateway.call("step")
        assert gateway.engine.usual.of("step") == [pytest.approx(3.0)] * 2
    async with Gateway(tool, settings=settings) as gateway:
        assert gateway.engine.usual.of("step") == [pytest.approx(3.0)] * 2


def test_the_stream_of_everything_tells_what_is_expected(api: Api) -> None:
    """P9, V4: of a silent call, too, as soon as it is known."""

    def ran(_: int) -> None:
        call = api.start("nap", tag=uuid4().hex, sleep_s=4.0)
        until(lambda: api.call(call)["outcome"], "an end")

    with ThreadPoolExecutor(5) as several:
        list(several.map(ran, range(5)))
    with api.stream("/api/events") as stream:
        call = api.start("nap", tag=uuid4().hex, sleep_s=1.0)
        found: list[dict[str, Any]] = []
        for event in stream:
            if event.event == "changes":
                found += [one for one in json.loads(event.data)["readings"] if one["call"] == call]
            if found:
                break
    assert found[0]["reading"] is None and not found[0]["stalled"] and found[0]["rate"] is None
    assert 1 < found[0]["eta"]["low_s"] <= found[0]["eta"]["high_s"] < 6
