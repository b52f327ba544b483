"""Callers that cannot wait: whose limit counts, the rounds that nobody sees, and the handle after them."""

import asyncio
from math import inf
from typing import Any

import msgspec
import pytest

from afoot.core.facts import Result
from afoot.core.ports import Report, Run
from afoot.serve.caller_presence import requests_of
from afoot.serve.mcp import handle_tools
from afoot.serve.mcp.era_2026 import MAX_ROUNDS
from afoot.wire.results import CallBudget, Capabilities
from tests.engine.fake_engine import form
from tests.serve.fake_gateway import (
    YES,
    Client,
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
)
from tests.serve.mcp.handle_requests import BRIEF, LASTING, sleeping
from tests.serve.raw_transports import cancelled, older


@pytest.mark.parametrize(
    "settings, wait_s, client, limit_s",
    [
        ({}, None, "", inf),
        ({}, None, "somebody", inf),
        ({}, None, "Zed", 60),
        ({}, None, "Roo-Code", 60),
        ({}, None, "claude-ai", 60),
        ({}, None, "claude-code", inf),
        ({}, None, "goose-cli", 300),
        ({}, 20, "Zed", 20),
        ({}, 0, "Zed", inf),
        ({"caller_limits": {"my*": 5, "myself": 7}}, None, "Myself", 5),
        ({"caller_limits": {"zed": 600}}, None, "Zed", 600),
        ({"caller_limits": {"*": 0}}, None, "Zed", inf),
        ({"caller_limit_s": 30}, None, "somebody", 30),
        ({"caller_limit_s": 30}, None, "goose", 300),
        ({"caller_limit_s": 30, "caller_limits": {"some*": 10}}, None, "somebody", 10),
        ({"caller_limit_s": 0}, None, "somebody", inf),
        ({}, None, "z" * 100_000, inf),
    ],
)
@faked
async def test_the_nearest_word_on_a_callers_limit_counts(
    settings: dict[str, Any], wait_s: float | None, client: str, limit_s: float
) -> None:
    """H5: its own, then the settings by its name, then what is known of hosts, then the settings for all."""
    async with site_of(nap, settings=settings) as gateway:
        assert handle_tools.client_timeout(gateway, CallBudget(wait_s=wait_s), client) == limit_s


@faked
async def test_a_client_that_gave_up_once_gets_a_handle_before_that_the_next_time() -> None:
    """N2, H5: its cancel names a timeout of its SDK; a Stop of its person teaches nothing."""
    async with site_of(nap) as gateway:
        client = Client(gateway)
        client.session.client = "my-agent"
        client.put(older(1))
        await asyncio.sleep(6)
        client.tell(cancelled(1, "AbortError: This operation was aborted"))
        second = client.put(older(2))
        await asyncio.sleep(8)
        client.tell(cancelled(2, "McpError: MCP error -32001: Request timed out"))
        third = await client.ask(older(3))
    assert second.ended == [(14, None)]  # not handed over: nothing was learned from the first
    assert third.ended[0][0] == 14 + 0.75 * 8 and "afoot_call" in third.result["structuredContent"]


async def rounds(gateway: Any, most: int = 20, **parts: Any) -> list[Tape]:
    """A client that asks again by itself, until it gets something else than a round without questions."""
    tapes = [await call_request(gateway, wanted(**parts))]
    while tapes[-1].result.get("requestState") and "inputRequests" not in tapes[-1].result:
        assert len(tapes) < most
        tapes.append(await call_request(gateway, wanted(**{**parts, "state": tapes[-1].state})))
    return tapes


@faked
async def test_a_call_outlasts_its_caller_by_rounds_that_ask_nothing() -> None:
    """H5: each request ends at three quarters of the limit, and the retry follows the same call."""
    ran: list[str] = []

    async def tool(run: Run) -> Result:
        ran.append(run.id)
        return await nap(run)

    async with site_of(tool) as gateway:
        tapes = await rounds(gateway, budget=BRIEF)
    assert [tape.ended[0][0] for tape in tapes] == [3, 6, 9, 10]
    assert tapes[-1].result["content"][0]["text"] == "slept" and len(ran) == 1


@faked
@pytest.mark.parametrize("can", [Capabilities(sampling={}), Capabilities(roots={}), Capabilities({})])
async def test_a_round_needs_no_more_than_a_client_that_knows_rounds(can: Capabilities) -> None:
    """H5: whoever says that it can be asked anything asks again by itself."""
    async with site_of(nap) as gateway:
        assert len(await rounds(gateway, budget=BRIEF, capabilities=can)) == 4


@faked
async def test_progress_goes_on_rising_over_such_rounds() -> None:
    """P4, H5: one series; what the tool said between two requests is told to the next."""

    async def tool(run: Run) -> str:
        run.report(1, 9, "one")
        await asyncio.sleep(3.5)
        # Nobody is there: the client is about to ask again.
        run.content(Report(2, 9, "two", data=msgspec.Raw(b'{"page":2}')))
        run.report(3, 9, "three")
        await asyncio.sleep(4)
        run.report(2, 9, "back")
        return "done"

    async with site_of(tool) as gateway:
        first = await call_request(gateway, wanted(token="a", budget=BRIEF))
        await asyncio.sleep(1)
        [second, third] = await rounds(gateway, token="b", budget=BRIEF, state=first.state)
    shown = [(params["progressToken"], params["message"]) for params in (*first.progress, *second.progress)]
    assert shown == [("a", "one"), ("b", "two"), ("b", "three")]
    numbers = [number for tape in (first, second, third) for number, _ in tape.numbers]
    assert numbers == sorted(set(numbers)) and third.progress[-1]["message"] == "back"


@faked
async def test_the_newest_value_goes_out_before_the_round() -> None:
    """P4: what the rate held back is not lost with the request."""

    async def tool(run: Run) -> Result:
        for n in range(290):
            run.report(n, None, None)
            await asyncio.sleep(0.0101)
        return await nap(run)

    async with site_of(tool, settings={"progress_hz": 0.5}) as gateway:
        tape = await call_request(gateway, wanted(token="t", budget=BRIEF))
    assert tape.numbers[-1] == (289, None)


@faked
async def test_after_eight_rounds_the_caller_gets_a_handle() -> None:
    """H5, Q1 g: official clients stop at ten; the call runs on for nobody."""
    async with site_of(sleeping(100), limits=LASTING) as gateway:
        tapes = await rounds(gateway, budget=BRIEF)
        last = tapes[-1]
        assert len(tapes) == MAX_ROUNDS + 1 and last.ended[0][0] == 3 * (MAX_ROUNDS + 1)
        live = only(gateway)
        assert last.result["structuredContent"]["afoot_call"] == live.call.id
        assert requests_of(live).attached == 0
        last.leave()
        await asyncio.sleep(80)
        assert live.call.end is not None and live.call.end.outcome == "ok"


@faked
async def test_questions_and_rounds_share_one_count() -> None:
    """H5, Q1 g: seven questions leave one round to a call that takes long."""

    async def tool(run: Run) -> Result:
        for n in range(MAX_ROUNDS - 1):
            await run.ask(form(f"k{n}"))
        return await nap(run)

    async with site_of(tool) as gateway:
        tape = await call_request(gateway, wanted(budget=BRIEF))
        for n in range(MAX_ROUNDS - 1):
            tape = await call_request(
                gateway, wanted(budget=BRIEF, state=tape.state, answers=replies(**{f"k{n}": YES}))
            )
        assert "inputRequests" not in tape.result
        tape = await call_request(gateway, wanted(budget=BRIEF, state=tape.state))
        assert "afoot_call" in tape.result["structuredContent"]


@faked
async def test_a_question_comes_before_the_round() -> None:
    """H5, Q1: what is asked in that moment is asked; what is asked in between, by the next."""

    async def tool(run: Run) -> str:
        await asyncio.sleep(2.9)
        first = await run.ask(form("now"))
        await asyncio.sleep(3.5)
        return said(first) + said(await run.ask(form("then")))

    async with site_of(tool) as gateway:
        first = await call_request(gateway, wanted(budget=BRIEF))
        assert list(first.result["inputRequests"]) == ["now"]
        second = await call_request(
            gateway, wanted(budget=BRIEF, state=first.state, answers=replies(now=YES))
        )
        assert "inputRequests" not in second.result
        await asyncio.sleep(1)
        third = await call_request(gateway, wanted(budget=BRIEF, state=second.state))
        assert list(third.result["inputRequests"]) == ["then"]
        last = await call_request(gateway, wanted(budget=BRIEF, state=third.state, answers=replies(then=YES)))
        assert last.result["content"][0]["text"].count("accept") == 2


@faked
async def test_a_question_for_the_operator_does_not_hold_the_caller() -> None:
    """H5: on whom the call waits does not matter to a client's clock, and the handle says on whom."""

    async def tool(run: Run) -> str:
        return said(await run.ask(question("url")))

    async with site_of(tool) as gateway:
        tape = await call_request(gateway, wanted(budget=BRIEF, capabilities=Capabilities()))
        assert "waiting for an answer: well?" in tape.result["content"][0]["text"]
        assert only(gateway).call.open


@faked
async def test_who_cannot_be_asked_anything_gets_a_handle_at_once() -> None:
    """H5: a client that says nothing of rounds would take one for an error."""
    async with site_of(nap) as gateway:
        tape = await call_request(gateway, wanted(budget=BRIEF, token="t", capabilities=Capabilities()))
        live = only(gateway)
        assert tape.ended[0][0] == 3 and not tape.result.get("isError")
        assert tape.result["_meta"] | {} == {
            "dev.afoot/call": live.call.id, "dev.afoot/server": "bench", "dev.afoot/tool": "tool",
            "progressToken": "t",
            "io.modelcontextprotocol/serverInfo": {"name": "afoot", "version": "1"},
        }  # fmt: skip
        await asyncio.sleep(8)
        assert live.call.end is not None and live.call.end.outcome == "ok"


@faked
async def test_a_caller_that_leaves_before_its_limit_still_cancels() -> None:
    """X1, H5: only what was handed over runs for nobody."""
    async with site_of(nap) as gateway:
        tape = Tape()
        task = begin(gateway, wanted(budget=BRIEF), tape)
        await asyncio.sleep(1)
        live = only(gateway)
        tape.leave()
        await task
    assert live.call.end is not None and live.call.end.outcome == "cancelled"


@faked
async def test_a_retry_that_leaves_cancels_as_any_does() -> None:
    """Q1 d, H5: the last request of the newest round is the caller."""
    async with site_of(nap) as gateway:
        first = await call_request(gateway, wanted(budget=BRIEF))
        tape = Tape()
        task = begin(gateway, wanted(budget=BRIEF, state=first.state), tape)
        await asyncio.sleep(1)
        live = only(gateway)
        tape.leave()
        await task
    assert live.call.end is not None and live.call.end.outcome == "cancelled"


@faked
async def test_whoever_waits_as_long_as_it_takes_sees_nothing_of_this() -> None:
    """H5: unknown is off."""
    async with site_of(sleeping(290), limits=LASTING) as gateway:
        tape = await call_request(gateway, wanted(client="somebody"))
    assert tape.ended[0][0] == 290 and tape.result["content"][0]["text"] == "slept"
