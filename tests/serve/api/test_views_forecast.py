"""What is expected of a call that runs, as it is shown and sent."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from msgspec import Raw

from afoot.config.settings import Settings
from afoot.core.facts import Answer, Limits
from afoot.core.ports import CallQuery, Report, Run
from afoot.engine.engine import Submission
from afoot.gateway import Gateway
from afoot.observe.eta import Eta
from afoot.serve.api.calls import find_calls
from afoot.serve.api.views import call_eta, call_view_with_forecast, forecast
from afoot.serve.caller_presence import requests_of
from afoot.serve.gateway_state import GatewayState
from afoot.testing import scripted
from tests.e2e.gateway import until
from tests.engine.fake_engine import Bench, form, offering
from tests.serve.api_client import Api
from tests.serve.fake_gateway import (
    YES,
    Tape,
    begin,
    call_request,
    faked,
    nap,
    only,
    replies,
    site_of,
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
    """P9, P13: from the second report on, one value, and later its rate."""
    async with site_of(hundred) as gateway:
        engine = gateway.engine
        live = engine.submit(Submission("tool"))
        await asyncio.sleep(1.5)
        assert call_view_with_forecast(engine, live, engine.clock.now()).eta is None
        await asyncio.sleep(1)
        assert call_view_with_forecast(engine, live, engine.clock.now()).eta == Eta(97.5)
        await asyncio.sleep(18)
        shown = call_view_with_forecast(engine, live, engine.clock.now())
        assert shown.eta == Eta(79.5)
        assert shown.rate == pytest.approx(1.0, rel=0.1)
        assert [one.eta for one in await find_calls(gateway, CallQuery())] == [shown.eta]


@faked
async def test_half_done_in_a_moment_leaves_a_moment() -> None:
    """P13: four of eight after 0.75 s, whatever earlier runs took; the newest reading need not be sampled."""

    async def eight(run: Run) -> str:
        for number in range(1, 9):
            await asyncio.sleep(0.1875)
            run.report(number, 8, None)
        return "done"

    async with site_of(eight) as gateway:
        engine = gateway.engine
        for _ in range(9):
            engine.durations.add("bench/tool", 180.0)
        live = engine.submit(Submission("tool"))
        await asyncio.sleep(0.8)
        assert len(live.points) == 1
        assert call_eta(engine, live, engine.clock.now()) == Eta(0.7)


@faked
async def test_a_silent_call_is_foreseen_from_earlier_runs() -> None:
    """P9: five of them; none before, and none of another tool."""
    async with site_of(nap) as gateway:
        engine = gateway.engine
        for run in range(5):
            live = engine.submit(Submission("tool"))
            assert call_eta(engine, live, engine.clock.now()) is None, run
            await engine.idle(20)
        live = engine.submit(Submission("tool"))
        await asyncio.sleep(4)
        assert call_eta(engine, live, engine.clock.now()) == Eta(6.0)


@faked
async def test_nothing_is_foreseen_of_a_call_that_waits_or_is_over() -> None:
    """P9: nobody knows how long a person takes."""

    async def asks(run: Run) -> str:
        await hundred(run)
        await run.ask(form("sure"))
        return "done"

    async with site_of(asks) as gateway:
        engine = gateway.engine
        live = engine.submit(Submission("tool"))
        await asyncio.sleep(99.5)
        assert forecast(engine, live, engine.clock.now()).eta is not None
        await asyncio.sleep(1)
        assert live.call.open and forecast(engine, live, engine.clock.now()).eta is None
        engine.cancel(live, "operator", "enough")
        assert forecast(engine, live, engine.clock.now()).rate is None


async def asks_and_works(run: Run) -> str:
    """A tool that asks, and works on for long."""
    await run.ask(form("sure"))
    await asyncio.sleep(1000)
    return "done"


@faked
async def test_a_call_whose_caller_asks_its_user_is_not_detached() -> None:
    """V1, X3, A5: nor is it when the operator was faster; it is once its user has had the time to answer."""
    limits = Limits(idle_s=2000, ceiling_s=2000, answer_s=60)
    async with site_of(asks_and_works, limits=limits) as gateway:
        await call_request(gateway, wanted())
        live = only(gateway)
        await asyncio.sleep(10)
        assert (requests_of(live).attached, is_detached(gateway)) == (0, False)
        gateway.engine.answer(next(iter(live.call.open)), Answer("accept", Raw(b"{}"), "operator"))
        await asyncio.sleep(10)
        assert not live.call.open and not is_detached(gateway)
        await asyncio.sleep(41)
        assert is_detached(gateway)


@pytest.mark.parametrize("by", ["operator", "local"])
@faked
async def test_a_call_whose_caller_came_back_with_an_answer_and_left_is_detached(by: str) -> None:
    """V1, X3: whoever answered first."""
    limits = Limits(idle_s=2000, ceiling_s=2000)
    async with site_of(asks_and_works, limits=limits, on_disconnect="detach") as gateway:
        state = (await call_request(gateway, wanted())).state
        if by == "operator":
            question = next(iter(only(gateway).call.open))
            gateway.engine.answer(question, Answer("accept", Raw(b"{}"), "operator"))
        tape = Tape()
        back = begin(gateway, wanted(state=state, answers=replies(sure=YES)), tape)
        await asyncio.sleep(10)
        assert not is_detached(gateway)
        tape.leave()
        await back
        assert is_detached(gateway)


def is_detached(gateway: GatewayState) -> bool:
    """Whether the one call that lives is shown as one that nobody waits for."""
    return forecast(gateway.engine, only(gateway), gateway.engine.clock.now()).detached


@faked
async def test_a_call_stalls_by_its_own_usual_gap() -> None:
    """C5, P9: four times what it usually takes between two advances; and it is shown as such."""
    async with site_of(five_then_alive) as gateway:
        live = gateway.engine.submit(Submission("tool"))
        await asyncio.sleep(35.5)
        assert not call_view_with_forecast(gateway.engine, live, gateway.engine.clock.now()).stalled
        await asyncio.sleep(1)
        assert call_view_with_forecast(gateway.engine, live, gateway.engine.clock.now()).stalled


@faked
async def test_a_call_that_repeats_one_number_is_stalled() -> None:
    """C5: it lives, and does not advance; a new number, or new words, end that."""

    async def repeats(run: Run) -> str:
        for number in range(1, 6):
            run.report(number, 10, "on it")
            await asyncio.sleep(1)
        for _ in range(20):
            run.report(5, 10, "on it")
            await asyncio.sleep(1)
        run.report(5, 10, "going on")
        await asyncio.sleep(5)
        return "done"

    async with site_of(repeats) as gateway:
        live = gateway.engine.submit(Submission("tool"))
        seen = list[bool]()
        for _ in range(3):
            await asyncio.sleep(9.0)
            seen.append(forecast(gateway.engine, live, gateway.engine.clock.now()).stalled)
    assert seen == [False, True, False]


@faked
async def test_slow_steps_that_are_told_again_and_again_are_no_stall() -> None:
    """C5: the usual gap is one between advances, not one between reports."""

    async def slow(run: Run) -> str:
        for number in range(1, 8):
            for _ in range(8):
                run.report(number, 10, None)
                await asyncio.sleep(1)
        for _ in range(20):
            run.report(7, 10, None)
            await asyncio.sleep(1)
        return "done"

    async with site_of(slow) as gateway:
        live = gateway.engine.submit(Submission("tool"))
        await asyncio.sleep(7 * 8 + 12)
        assert not forecast(gateway.engine, live, gateway.engine.clock.now()).stalled


@pytest.mark.parametrize("kind", ["numbers", "content", "repeats", "heartbeats"])
@faked
async def test_a_call_advances_with_the_calls_below_it(kind: str) -> None:
    """C5, P8: although it has numbers of its own, and theirs change nothing in them."""

    async def child(run: Run) -> str:
        for number in range(40):
            match kind:
                case "numbers":
                    run.report(number, None, None)
                case "content":
                    run.content(Report(data=Raw(b"1")))
                case "repeats":
                    run.report(1, None, None)
                case _:
                    run.alive()
            await asyncio.sleep(1)
        return "done"

    async def middle(run: Run) -> str:
        await run.call("child", Raw(b"{}"), 1.0)
        return "done"

    async def top(run: Run) -> str:
        run.report(1, 2, "both parts")
        await run.call("middle", Raw(b"{}"), 1.0)
        run.alive()
        await asyncio.sleep(5)
        return "done"

    bench = Bench()
    for name, body in (("top", top), ("middle", middle), ("child", child)):
        bench.add(body, name)
    async with offering(bench) as engine:
        live = engine.submit(Submission("top"))
        await asyncio.sleep(30)
        has_stalled = forecast(engine, live, engine.clock.now()).stalled
        assert has_stalled == (kind in ("repeats", "heartbeats"))
        await asyncio.sleep(12)
        assert not forecast(engine, live, engine.clock.now()).stalled  # what it called has ended just now


@pytest.mark.parametrize("reports", [0, 3])
@faked
async def test_a_call_without_an_idle_limit_stalls_in_silence(reports: int) -> None:
    """C5: no clock ends it, so somebody may want to look."""

    async def silent(run: Run) -> str:
        for number in range(reports):
            run.report(number, 10, None)
            await asyncio.sleep(1)
        await asyncio.sleep(100)
        return "done"

    async with site_of(silent, limits=Limits(idle_s=None)) as gateway:
        live = gateway.engine.submit(Submission("tool"))
        await asyncio.sleep(11)
        assert not forecast(gateway.engine, live, gateway.engine.clock.now()).stalled
        await asyncio.sleep(20)
        assert forecast(gateway.engine, live, gateway.engine.clock.now()).stalled
        live = gateway.engine.submit(Submission("tool", idle_s=60.0))
        await asyncio.sleep(31)
        assert not forecast(gateway.engine, live, gateway.engine.clock.now()).stalled


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

    async with site_of(bursts) as gateway:
        live = gateway.engine.submit(Submission("tool"))
        await asyncio.sleep(4 * 22 + 20)
        assert live.call.latest is not None and gateway.engine.clock.now() - live.call.latest.at > 15
        assert not forecast(gateway.engine, live, gateway.engine.clock.now()).stalled


@faked
async def test_progress_carries_how_long_it_still_takes() -> None:
    """P9, P13: in `_meta`, at most once a second, from the first second on; one value, which is the truth."""

    async def fast(run: Run) -> str:
        for number in range(1, 401):
            await asyncio.sleep(0.05)
            run.report(number, 400, None)
        return "done"

    async with site_of(fast) as gateway:
        tape = await call_request(gateway, wanted(token="t"))
    told = [
        (at, sent["params"]["_meta"]["dev.afoot/progress"]["eta_s"])
        for at, sent in tape.of("notifications/progress")
        if "eta_s" in sent["params"].get("_meta", {}).get("dev.afoot/progress", {})
    ]
    begun = told[0][0]
    assert 1.0 <= begun < 1.5 and 17 <= len(told) <= 20 < len(tape.progress)
    assert all(abs(20.0 - at - left_s) < 0.2 for at, left_s in told)
    assert "eta_range_s" not in json.dumps(tape.progress)


@faked
async def test_a_notice_of_a_silent_call_carries_it_too() -> None:
    """P9, C6: from earlier runs."""

    async def long(run: Run) -> str:
        await asyncio.sleep(25)
        return "done"

    async with site_of(long) as gateway:
        for _ in range(5):
            gateway.engine.submit(Submission("tool"))
        await gateway.engine.idle(60)
        tape = await call_request(gateway, wanted(token="t"))
    [notice] = tape.progress
    assert notice["_meta"]["dev.afoot/progress"]["eta_s"] == 10.0


@faked
async def test_a_short_call_is_told_nothing() -> None:
    """P9: an estimate is not for what is over at once."""

    async def short(run: Run) -> str:
        for number in range(1, 5):
            await asyncio.sleep(0.2)
            run.report(number, 4, None)
        return "done"

    async with site_of(short) as gateway:
        tape = await call_request(gateway, wanted(token="t"))
        assert not gateway.engine.calls()
    assert "eta_s" not in json.dumps(tape.progress)


@faked
async def test_what_tools_took_before_is_known_from_the_history(tmp_path: Path) -> None:
    """P9: a gateway that starts again still knows how long they take."""
    settings = Settings(store=str(tmp_path / "calls.db"))
    tool = scripted(("sleep", 3.0), ("return", "done"), name="step")
    async with Gateway(tool, settings=settings) as gateway:
        for _ in range(2):
            await gateway.call("step")
        assert gateway.engine.durations.of("local/step") == [pytest.approx(3.0)] * 2
    async with Gateway(tool, settings=settings) as gateway:
        assert gateway.engine.durations.of("local/step") == [pytest.approx(3.0)] * 2


@faked
async def test_the_time_of_people_is_not_in_what_the_history_says(tmp_path: Path) -> None:
    """P9: a tool takes as long after a restart as it did before."""
    settings = Settings(store=str(tmp_path / "calls.db"))
    tool = scripted(("sleep", 3.0), ("ask", "sure?"), ("return", "done"), name="step")
    async with Gateway(tool, settings=settings) as gateway:
        call = gateway.submit("step")
        await asyncio.sleep(60)
        gateway.answer(next(iter(gateway.engine[call].call.open)))
        await gateway.result(call)
        assert gateway.engine.durations.of("local/step") == [pytest.approx(3.0)]
    async with Gateway(tool, settings=settings) as gateway:
        assert gateway.engine.durations.of("local/step") == [pytest.approx(3.0)]


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
    assert 1 < found[0]["eta"]["left_s"] < 6
