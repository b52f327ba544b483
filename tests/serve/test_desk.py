"""Calls that were handed over: waiting for them, with all that this may bring."""

import asyncio

from msgspec import Raw

from afoot.core.facts import Answer, Result
from afoot.core.ports import Run
from afoot.errors import ToolError
from afoot.serve.conversation import BIG
from afoot.wire.messages import Budget, Capabilities
from tests.engine.double import form, text
from tests.serve.double import (
    YES,
    Tape,
    begin,
    faked,
    nap,
    only,
    question,
    replies,
    said,
    site_of,
    talk,
    wanted,
)  # fmt: skip
from tests.serve.handles import BRIEF, MUTE, handed, wait, words


@faked
async def test_waiting_returns_the_result_whole() -> None:
    """H5: content and structure as the tool gave them; and again, as often as it is asked for."""

    async def tool(run: Run) -> Result:
        await asyncio.sleep(4)
        return Result(Raw(b'[{"type":"text","text":"four"}]'), Raw(b'{"n":4}'))

    async with site_of(tool) as site:
        call_id = await handed(site)
        first = await talk(site, wait(call_id, token="t"))
        again = await talk(site, wait(call_id))
    assert (first.ended[0][0], words(first), first.result["structuredContent"]) == (4, "four", {"n": 4})
    assert first.result["_meta"]["dev.afoot/call"] == call_id and first.result["resultType"] == "complete"
    assert first.result["_meta"]["progressToken"] == "t" and words(again) == "four"


@faked
async def test_waiting_returns_a_failure_whole() -> None:
    """H5, E2: with what it says for programs."""

    async def tool(run: Run) -> str:
        await asyncio.sleep(4)
        raise ToolError.rate_limited("slow down", retry_after=7)

    async with site_of(tool) as site:
        tape = await talk(site, wait(await handed(site)))
    assert tape.result["isError"] and tape.result["_meta"]["dev.afoot/error"]["retry_after_s"] == 7


@faked
async def test_waiting_ends_before_the_same_limit_and_says_how_far_it_is() -> None:
    """H5: with the same kind of handle, until the call ends."""

    async def tool(run: Run) -> str:
        for n in range(1, 6):
            await asyncio.sleep(2)
            run.report(n, 5, f"part {n}")
        return "done"

    async with site_of(tool) as site:
        call_id = await handed(site)
        second = await talk(site, wait(call_id))
        third = await talk(site, wait(call_id))
        last = await talk(site, wait(call_id))
    assert [tape.ended[0][0] for tape in (second, third, last)] == [6, 9, 10]
    assert "running, 6 s, at 2/5: part 2." in words(second) or "at 3/5" in words(second)
    assert second.result["structuredContent"] == {"afoot_call": call_id} and words(last) == "done"


@faked
async def test_waiting_reports_progress_in_the_series_of_the_call() -> None:
    """H5, P4: it rises over handles too, and begins with the newest value that nobody was told."""

    async def tool(run: Run) -> str:
        for n in range(1, 9):
            run.report(n, 8, f"part {n}")
            await asyncio.sleep(0.9)
        return "done"

    async with site_of(tool) as site:
        first = await talk(site, wanted(budget=BRIEF, capabilities=MUTE, token="a"))
        await asyncio.sleep(1)
        call_id = first.result["structuredContent"]["afoot_call"]
        second = await talk(site, wait(call_id, token="b"))
        last = await talk(site, wait(call_id, token="c"))
    found = [(tape.progress[0]["message"], tape.progress[-1]["message"]) for tape in (first, second)]
    assert found == [("part 1", "part 4"), ("part 5", "part 8")] and words(last) == "done"
    numbers = [number for tape in (first, second) for number, _ in tape.numbers]
    assert numbers == sorted(set(numbers))


@faked
async def test_a_client_that_knows_rounds_waits_by_rounds() -> None:
    """H5: unseen by the model; the retry of a wait is bound to that wait."""

    async def tool(run: Run) -> Result:
        await asyncio.sleep(10)
        return text("slept")

    async with site_of(tool) as site:
        call_id = await handed(site)
        live = only(site)
        tape = await talk(site, wait(call_id, capabilities=Capabilities({})))
        assert "inputRequests" not in tape.result and (live.round, live.attached) == (0, 0)
        other = await talk(site, wait(call_id, seconds=0))
        assert "afoot_call" in other.result["structuredContent"]
        for _ in range(2):
            tape = await talk(site, wait(call_id, capabilities=Capabilities({}), state=tape.state))
    assert words(tape) == "slept" and tape.ended[0][0] == 10


@faked
async def test_a_call_asks_through_whoever_waits_for_it() -> None:
    """H5, Q1: on 2026-07-28 by a round of the wait; the answer reaches the tool, which runs once."""

    async def tool(run: Run) -> str:
        await asyncio.sleep(4)
        return said(await run.ask(form("sure")))

    async with site_of(tool) as site:
        call_id = await handed(site)
        await asyncio.sleep(2)
        able = Capabilities({})
        first = await talk(site, wait(call_id, capabilities=able))
        assert list(first.result["inputRequests"]) == ["sure"] and first.ended[0][0] == 5
        answered = wait(call_id, capabilities=able, state=first.state, answers=replies(sure=YES))
        last = await talk(site, answered)
    assert words(last) == "accept {} by local"


@faked
async def test_a_call_that_nobody_waits_for_asks_the_operator() -> None:
    """H5, Q4: its question is open, and an answer from there lets it go on."""

    async def tool(run: Run) -> str:
        await asyncio.sleep(4)
        return said(await run.ask(form("sure")))

    async with site_of(tool) as site:
        call_id = await handed(site)
        await asyncio.sleep(5)
        [asked] = only(site).call.open
        site.engine.answer(asked, Answer(by="operator"))
        assert words(await talk(site, wait(call_id))) == "accept {} by operator"


@faked
async def test_a_call_that_ended_long_ago_is_in_the_journal() -> None:
    """H5, H1: a handle does not grow old."""
    async with site_of(nap) as site:
        call_id = await handed(site)
        await asyncio.sleep(100_000)
        assert call_id not in site.engine
        tape = await talk(site, wait(call_id))
    assert words(tape) == "slept" and tape.ended[0][0] == 100_003


@faked
async def test_a_wait_may_be_shorter() -> None:
    """H5: the model says how long; nothing of it is spent on rounds."""
    async with site_of(nap) as site:
        call_id = await handed(site)
        for seconds, at in ((0, 3), (1, 4), (50, 7)):
            tape = await talk(site, wait(call_id, seconds=seconds, capabilities=Capabilities({})))
            assert tape.ended[0][0] == at and "afoot_call" in tape.result["structuredContent"]


@faked
async def test_a_wait_without_any_limit_lasts_as_long_as_the_call() -> None:
    """H5: for a caller that can wait."""
    async with site_of(nap) as site:
        call_id = await handed(site)
        tape = await talk(site, wait(call_id, budget=Budget()))
    assert words(tape) == "slept" and tape.ended[0][0] == 10


@faked
async def test_giving_up_a_wait_stops_no_call() -> None:
    """H5, X3: by leaving, or by a cancel of that request; nothing more is sent for it."""
    async with site_of(nap) as site:
        call_id = await handed(site)
        tape = Tape()
        task = begin(site, wait(call_id), tape)
        await asyncio.sleep(1)
        tape.leave()
        await task
        assert only(site).call.cancel is None
        assert words(await talk(site, wait(call_id, budget=Budget()))) == "slept"
        assert tape.ended[0][1] is None


@faked
async def test_a_large_result_of_a_wait_is_fetched_by_its_retry() -> None:
    """G3, H5: as of any call."""

    async def tool(run: Run) -> str:
        await asyncio.sleep(4)
        run.report(1, 1, None)
        await asyncio.sleep(0.1)
        return "x" * BIG

    async with site_of(tool) as site:
        call_id = await handed(site)
        first = await talk(site, wait(call_id, token="t"))
        second = await talk(site, wait(call_id, token="u", state=first.state))
    assert len(words(second)) == BIG and not second.streaming


@faked
async def test_what_only_a_caller_has_waits_for_the_caller() -> None:
    """H5, Q1: a model is asked for once somebody waits who has one; else it is declined then."""

    async def tool(run: Run) -> str:
        await asyncio.sleep(4)
        return said(await run.ask(question("sample")))

    async with site_of(tool) as site:
        call_id = await handed(site)
        await asyncio.sleep(5)
        assert only(site).call.open
        assert words(await talk(site, wait(call_id))) == "decline  by engine"
