"""One request that follows one call: what it is told while the tool says nothing."""

import asyncio

import pytest
from msgspec import Raw

from afoot.core.facts import Limits
from afoot.core.ports import Report, Run
from afoot.wire.results import Capabilities
from tests.engine.fake_engine import form
from tests.serve.fake_gateway import begin, call_request, faked, nap, only, site_of, wanted

PATIENT = Limits(idle_s=None)


async def silent(run: Run) -> str:
    """A tool that takes fifty seconds and says nothing."""
    await asyncio.sleep(50)
    return "done"


@faked
async def test_a_silent_call_is_told_of_every_fifteen_seconds() -> None:
    """C6, T5: from the engine, with neither total nor number of the tool; nothing else is sent."""
    async with site_of(silent, limits=PATIENT) as gateway:
        tape = await call_request(gateway, wanted(token="t"))
    assert tape.notices == [(15, "running, 15 s"), (30, "running, 30 s"), (45, "silent for 45 s")]
    assert len(tape.frames) == 3 and all("total" not in params for params in tape.progress)
    steps = [params["progress"] for params in tape.progress]
    assert steps == sorted(set(steps)) and steps[-1] < 1
    assert tape.ended[0][0] == 50


@faked
async def test_a_notice_waits_for_fifteen_seconds_without_a_frame() -> None:
    """C6: what the tool says itself needs no notice beside it."""

    async def tool(run: Run) -> str:
        for n in range(3):
            await asyncio.sleep(10)
            run.report(n, None, "on it")
        await asyncio.sleep(20)
        return "done"

    async with site_of(tool, limits=PATIENT) as gateway:
        tape = await call_request(gateway, wanted(token="t"))
    assert tape.notices == [(45, "running, 45 s")]


@faked
async def test_no_notice_comes_in_the_first_two_seconds() -> None:
    """T5: whatever the setting says; a short call is never talked about by the engine."""
    async with site_of(nap, settings={"notice_s": 0.3, "keepalive_s": 0.3}) as gateway:
        tape = await call_request(gateway, wanted(token="t"))
    assert tape.notices[0][0] >= 2 and 0.3 in tape.comments
    assert len(tape.notices) > 20


@faked
async def test_notices_touch_no_clock() -> None:
    """T5, C1: a call that says nothing ends at its idle limit, however often the engine spoke for it."""
    async with site_of(silent, settings={"notice_s": 4.0}) as gateway:
        tape = await call_request(gateway, wanted(token="t"))
    assert len(tape.notices) == 7
    assert tape.ended[0][0] == 30 and tape.result["_meta"]["dev.afoot/error"]["clock"] == "idle"


@faked
async def test_a_notice_never_shows_a_total_of_its_own_or_all_of_it() -> None:
    """T5: the tool's total while it is not reached; at the end of the numbers, none."""

    async def tool(run: Run) -> str:
        run.report(3, 4, None)
        await asyncio.sleep(20)
        run.report(4, 4, None)
        await asyncio.sleep(20)
        return "done"

    async with site_of(tool) as gateway:
        tape = await call_request(gateway, wanted(token="t"))
    assert tape.numbers == [(3, 4), (pytest.approx(3), 4), (4, 4), (pytest.approx(4), None)]
    assert [at for at, _ in tape.notices] == [15, 35]


@faked
async def test_without_a_token_there_are_comments_and_no_frame() -> None:
    """C6, P6: the stream opens after 5 s; a comment every 15 s; no notification at all."""

    async def tool(run: Run) -> str:
        run.report(1, 2, "unheard")
        run.content(Report(message="unheard", data=Raw(b"{}")))
        return await silent(run)

    async with site_of(tool, limits=PATIENT) as gateway:
        tape = await call_request(gateway, wanted())
    assert (tape.frames, tape.comments) == ([], [5, 15, 30, 45])
    assert "progressToken" not in tape.result["_meta"]


@faked
async def test_while_a_person_is_waited_for_the_notice_says_so() -> None:
    """C6: the caller cannot be asked, so the operator is; the clocks stand still meanwhile."""

    async def tool(run: Run) -> str:
        await run.ask(form("sure"))
        return "done"

    async with site_of(tool, limits=Limits(answer_s=40)) as gateway:
        tape = await call_request(gateway, wanted(token="t", capabilities=Capabilities()))
    assert tape.notices == [(15, "waiting for an answer: sure?"), (30, "waiting for an answer: sure?")]
    metas = [params["_meta"]["dev.afoot/progress"] for params in tape.progress]
    assert [meta["waiting_on"] for meta in metas] == ["person", "person"]
    assert tape.result["_meta"]["dev.afoot/error"]["clock"] == "answer" and tape.ended[0][0] == 40


@faked
async def test_a_call_in_the_queue_says_so() -> None:
    """T5, C8: queued, until it runs."""
    async with site_of(silent, limits=PATIENT, concurrency=1) as gateway:
        first = begin(gateway, wanted())
        await asyncio.sleep(0)
        second = await call_request(gateway, wanted(token="t"))
        await first
    texts = [text for _, text in second.notices]
    assert texts[:3] == ["queued, 15 s", "queued, 30 s", "queued, 45 s"] and texts[3] == "running, 10 s"


@faked
async def test_a_call_that_lives_without_advance_is_called_so() -> None:
    """C5: heartbeats keep it running, and the notice says that it does not get on."""

    async def tool(run: Run) -> str:
        for n in range(1, 6):
            await asyncio.sleep(1)
            run.report(n, 10, None)
        for _ in range(20):
            await asyncio.sleep(2)
            run.alive()
        return "done"

    async with site_of(tool) as gateway:
        tape = await call_request(gateway, wanted(token="t"))
    assert tape.notices[0] == (20, "alive, but no advance for 15 s")
    assert tape.result["content"][0]["text"] == "done"


@faked
async def test_a_request_leaves_nothing_behind() -> None:
    """T4: when the last frame is out there is no call, no timer and no follower left."""
    async with site_of(nap) as gateway:
        task = begin(gateway, wanted(token="t"))
        await asyncio.sleep(1)
        live = only(gateway)
        assert len(live.followers) == len(live.watchers) == 1
        await task
        assert gateway.engine.calls() == [] and gateway.engine.deadlines.deferred == {}
