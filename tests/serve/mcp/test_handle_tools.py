"""Calls that were handed over: waiting for them, with all that this may bring."""

import asyncio

from msgspec import Raw

from afoot.core.facts import Answer, Result
from afoot.core.ports import Run
from afoot.errors import ToolError
from afoot.serve.caller_presence import requests_of
from afoot.serve.mcp.call_request import EVENT_MAX_BYTES
from afoot.wire.results import CallBudget, Capabilities
from tests.engine.fake_engine import form, text
from tests.serve.fake_gateway import (
    YES,
    Tape,
    begin,
    call_request,
    faked,
    nap,
    only,
    question,
    replies,
    said,
    site_of,
    wanted,
)  # fmt: skip
from tests.serve.mcp.handle_requests import BRIEF, MUTE, handed, wait, words


@faked
async def test_waiting_returns_the_result_whole() -> None:
    """H5: content and structure as the tool gave them; and again, as often as it is asked for."""

    async def tool(run: Run) -> Result:
        await asyncio.sleep(4)
        return Result(Raw(b'[{"type":"text","text":"four"}]'), Raw(b'{"n":4}'))

    async with site_of(tool) as gateway:
        call_id = await handed(gateway)
        first = await call_request(gateway, wait(call_id, token="t"))
        again = await call_request(gateway, wait(call_id))
    assert (first.ended[0][0], words(first), first.result["structuredContent"]) == (4, "four", {"n": 4})
    assert first.result["_meta"]["dev.afoot/call"] == call_id and first.result["resultType"] == "complete"
    assert first.result["_meta"]["progressToken"] == "t" and words(again) == "four"


@faked
async def test_waiting_returns_a_failure_whole() -> None:
    """H5, E2: with what it says for programs."""

    async def tool(run: Run) -> str:
        await asyncio.sleep(4)
        raise ToolError.rate_limited("slow down", retry_after=7)

    async with site_of(tool) as gateway:
        tape = await call_request(gateway, wait(await handed(gateway)))
    assert tape.result["isError"] and tape.result["_meta"]["dev.afoot/error"]["retry_after_s"] == 7


@faked
async def test_waiting_ends_before_the_same_limit_and_says_how_far_it_is() -> None:
    """H5: with the same kind of handle, until the call ends."""

    async def tool(run: Run) -> str:
        for n in range(1, 6):
            await asyncio.sleep(2)
            run.report(n, 5, f"part {n}")
        return "done"

    async with site_of(tool) as gateway:
        call_id = await handed(gateway)
        second = await call_request(gateway, wait(call_id))
        third = await call_request(gateway, wait(call_id))
        last = await call_request(gateway, wait(call_id))
    assert [tape.ended[0][0] for tape in (second, third, last)] == [6, 9, 10]
    assert "running, 6 s, at 2/5: part 2." in words(second) or "at 3/5" in words(second)
    structured = second.result["structuredContent"]
    assert structured == {"afoot_call": call_id, "text": words(second)} and words(last) == "done"


@faked
async def test_waiting_reports_progress_in_the_series_of_the_call() -> None:
    """H5, P4: it rises over handles too, and begins with the newest value that nobody was told."""

    async def tool(run: Run) -> str:
        for n in range(1, 9):
            run.report(n, 8, f"part {n}")
            await asyncio.sleep(0.9)
        return "done"

    async with site_of(tool) as gateway:
        first = await call_request(gateway, wanted(budget=BRIEF, capabilities=MUTE, token="a"))
        await asyncio.sleep(1)
        call_id = first.result["structuredContent"]["afoot_call"]
        second = await call_request(gateway, wait(call_id, token="b"))
        last = await call_request(gateway, wait(call_id, token="c"))
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

    async with site_of(tool) as gateway:
        call_id = await handed(gateway)
        live = only(gateway)
        tape = await call_request(gateway, wait(call_id, capabilities=Capabilities({})))
        requests = requests_of(live)
        assert "inputRequests" not in tape.result and (requests.round, requests.attached) == (0, 0)
        other = await call_request(gateway, wait(call_id, seconds=0))
        assert "afoot_call" in other.result["structuredContent"]
        for _ in range(2):
            tape = await call_request(gateway, wait(call_id, capabilities=Capabilities({}), state=tape.state))
    assert words(tape) == "slept" and tape.ended[0][0] == 10


@faked
async def test_a_call_asks_through_whoever_waits_for_it() -> None:
    """H5, Q1: on 2026-07-28 by a round of the wait; the answer reaches the tool, which runs once."""

    async def tool(run: Run) -> str:
        await asyncio.sleep(4)
        return said(await run.ask(form("sure")))

    async with site_of(tool) as gateway:
        call_id = await handed(gateway)
        await asyncio.sleep(2)
        able = Capabilities({})
        first = await call_request(gateway, wait(call_id, capabilities=able))
        assert list(first.result["inputRequests"]) == ["sure"] and first.ended[0][0] == 5
        answered = wait(call_id, capabilities=able, state=first.state, answers=replies(sure=YES))
        last = await call_request(gateway, answered)
    assert words(last) == "accept {} by local"


@faked
async def test_a_call_that_nobody_waits_for_asks_the_operator() -> None:
    """H5, Q4: its question is open, and an answer from there lets it go on."""

    async def tool(run: Run) -> str:
        await asyncio.sleep(4)
        return said(await run.ask(form("sure")))

    async with site_of(tool) as gateway:
        call_id = await handed(gateway)
        await asyncio.sleep(5)
        [asked] = only(gateway).call.open
        gateway.engine.answer(asked, Answer(by="operator"))
        assert words(await call_request(gateway, wait(call_id))) == "accept {} by operator"


@faked
async def test_a_call_that_ended_long_ago_is_in_the_journal() -> None:
    """H5, H1: a handle does not grow old."""
    async with site_of(nap) as gateway:
        call_id = await handed(gateway)
        await asyncio.sleep(100_000)
        assert call_id not in gateway.engine
        tape = await call_request(gateway, wait(call_id))
    assert words(tape) == "slept" and tape.ended[0][0] == 100_003


@faked
async def test_a_wait_may_be_shorter() -> None:
    """H5: the model says how long; nothing of it is spent on rounds."""
    async with site_of(nap) as gateway:
        call_id = await handed(gateway)
        for seconds, at in ((0, 3), (1, 4), (50, 7)):
            tape = await call_request(gateway, wait(call_id, seconds=seconds, capabilities=Capabilities({})))
            assert tape.ended[0][0] == at and "afoot_call" in tape.result["structuredContent"]


@faked
async def test_a_wait_without_any_limit_lasts_as_long_as_the_call() -> None:
    """H5: for a caller that can wait."""
    async with site_of(nap) as gateway:
        call_id = await handed(gateway)
        tape = await call_request(gateway, wait(call_id, budget=CallBudget()))
    assert words(tape) == "slept" and tape.ended[0][0] == 10


@faked
async def test_giving_up_a_wait_stops_no_call() -> None:
    """H5, X3: by leaving, or by a cancel of that request; nothing more is sent for it."""
    async with site_of(nap) as gateway:
        call_id = await handed(gateway)
        tape = Tape()
        task = begin(gateway, wait(call_id), tape)
        await asyncio.sleep(1)
        tape.leave()
        await task
        assert only(gateway).call.cancel is None
        assert words(await call_request(gateway, wait(call_id, budget=CallBudget()))) == "slept"
        assert tape.ended[0][1] is None


@faked
async def test_a_large_result_of_a_wait_is_fetched_by_its_retry() -> None:
    """G3, H5: as of any call."""

    async def tool(run: Run) -> str:
        await asyncio.sleep(4)
        run.report(1, 1, None)
        await asyncio.sleep(0.1)
        return "x" * EVENT_MAX_BYTES

    async with site_of(tool) as gateway:
        call_id = await handed(gateway)
        first = await call_request(gateway, wait(call_id, token="t"))
        second = await call_request(gateway, wait(call_id, token="u", state=first.state))
    assert len(words(second)) == EVENT_MAX_BYTES and not second.streaming


@faked
async def test_what_only_a_caller_has_waits_for_the_caller() -> None:
    """H5, Q1: a model is asked for once somebody waits who has one; else it is declined then."""

    async def tool(run: Run) -> str:
        await asyncio.sleep(4)
        return said(await run.ask(question("sample")))

    async with site_of(tool) as gateway:
        call_id = await handed(gateway)
        await asyncio.sleep(5)
        assert only(gateway).call.open
        assert words(await call_request(gateway, wait(call_id))) == "decline  by engine"
