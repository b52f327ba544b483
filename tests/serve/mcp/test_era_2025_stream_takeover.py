"""Streams that are taken up again while the one before is still open, stuck, or taken up by somebody else."""

import asyncio

import pytest

from afoot.core.facts import Entry
from afoot.core.ports import Run
from afoot.engine import engine
from afoot.engine.live_call import BACKLOG
from afoot.errors import StoreError
from afoot.serve.caller_presence import requests_of
from afoot.serve.mcp.asgi import HttpResponse
from afoot.serve.mcp.era_2025 import ResumableStream
from tests.engine.fake_engine import form
from tests.serve.fake_gateway import YES, faked, nap, only, said, site_of
from tests.serve.mcp.test_era_2025_resumed_streams import again, cut, lines, logs, nested, places
from tests.serve.raw_transports import cancelled, client, older


@pytest.fixture(autouse=True)
def logs_as_much_as_it_likes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tools here log more lines at once than a follower is kept: none of them is left out."""
    monkeypatch.setattr(engine, "LOG_BURST_BYTES", 10**9)


@faked
async def test_whoever_takes_over_from_itself_can_still_be_asked() -> None:
    """A5, H2: approvals of what the call calls go to its caller, who is there; it counts once."""
    async with site_of(nap, settings={"sse_after_s": 0.2}) as gateway:
        web = await client(gateway, elicitation={})
        first = web.post(older(1))
        await asyncio.sleep(1)
        second = again(web, places(first.events)[-1])
        await asyncio.sleep(1)
        await first.done()
        assert (requests_of(only(gateway)).can_ask, requests_of(only(gateway)).attached) == (True, 1)
        await second.done()


@faked
async def test_a_stream_that_is_stuck_is_left_without_a_busy_loop() -> None:
    """H2, P5: the time of others goes on until it is given up; then its reader goes on."""

    async def floods(run: Run) -> str:
        for n in range(50):
            await asyncio.sleep(0.1)
            run.log(f"line {n}", "info", "")
        return "done"

    async with site_of(floods, settings={"stuck_s": 3}) as gateway:
        web = await client(gateway)
        first = web.post(older(1))
        await asyncio.sleep(1.05)
        first.reads.clear()
        await asyncio.sleep(1)
        second = again(web, places(first.events)[-1])
        await asyncio.sleep(0.5)
        first.reads.set()
        await second.done()
        await first.done()
    assert lines(second.messages)[-1] == "line 49" and second.messages[-1]["id"] == 1


@pytest.mark.parametrize("wait_s", [0, 10])
@faked
async def test_two_who_take_up_one_stream_at_the_same_moment_do_not_break_it(wait_s: float) -> None:
    """H2: one of them has it; while the call runs, and when it is over."""
    async with site_of(logs) as gateway:
        web = await client(gateway)
        broken = await cut(web, older(7), 2.5)
        await asyncio.sleep(wait_s)
        both = [again(web, places(broken.events)[-1]) for _ in range(2)]
        for one in both:
            one.reads.clear()
        await asyncio.sleep(0.1)
        for one in both:
            one.reads.set()
        done = [await one.done() for one in both]
        assert [one.status for one in done] == [200, 200]
        whole = [one.messages for one in done if one.messages and "result" in one.messages[-1]]
        assert len(whole) >= 1 and lines(whole[-1]) == ["line 3", "line 4", "line 5"]
        assert (await web.ask(older(7))).status == 200


async def chatters(run: Run) -> str:
    """A tool that asks, logs meanwhile more than memory keeps, and says what it was told."""
    asking = asyncio.ensure_future(run.ask(form("sure")))
    await asyncio.sleep(1)
    for n in range(2 * BACKLOG):
        run.log(f"line {n}", "info", "")
    return said(await asking)


@pytest.mark.parametrize("is_cancelled", [False, True])
@faked
async def test_a_stream_that_cannot_go_on_leaves_its_call_as_it_was(
    monkeypatch: pytest.MonkeyPatch, is_cancelled: bool
) -> None:
    """H2, X1: nobody counts as waiting; its request is cancelled, or its stream taken up again, as ever."""

    async def away(*_: object) -> list[Entry]:
        raise StoreError("history: away")

    async with site_of(chatters) as gateway:
        web = await client(gateway, elicitation={})
        broken = await cut(web, older(1), 0.5)
        await asyncio.sleep(1)
        [asked], place = nested(broken), places(broken.events)[-1]
        with monkeypatch.context() as patched:
            patched.setattr(gateway.engine.journal, "facts", away)
            failed = await again(web, place).done()
        assert (failed.status, failed.is_whole, failed.messages) == (200, True, [])
        assert (requests_of(only(gateway)).attached, requests_of(only(gateway)).can_ask) == (0, False)
        if is_cancelled:
            await web.ask(cancelled(1))
            assert only(gateway).call.cancel is not None
            return
        resumed = again(web, place)
        await asyncio.sleep(1)
        assert requests_of(only(gateway)).attached == 1
        await web.ask({"jsonrpc": "2.0", "id": asked["id"], "result": YES})
        await resumed.done()
    assert nested(resumed) == [] and lines(resumed.messages) == [f"line {n}" for n in range(2 * BACKLOG)]
    assert resumed.messages[-1]["result"]["content"][0]["text"].startswith("accept")


@faked
async def test_what_is_not_sent_leaves_nothing_behind() -> None:
    """G3: a call may log for days what its caller does not want."""

    async def send(_: object) -> None: ...

    async with site_of(nap) as gateway:
        numbered = ResumableStream(gateway, HttpResponse(send, 1.0), "2025-11-25")
        for seq in range(1000):
            numbered.mark(0, seq)
        assert not numbered._fact_numbers
