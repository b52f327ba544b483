"""2026-07-28 as a manner of conversation: whom a question goes to, and results too large for a stream."""

import asyncio

import pytest
from msgspec import Raw

from afoot.core.facts import Answer, Limits
from afoot.core.ports import Run
from afoot.serve.mcp.call_request import EVENT_MAX_BYTES
from afoot.serve.mcp.era_2026 import MAX_ROUNDS, Era2026
from afoot.serve.mcp.pending import PendingRequests
from afoot.wire.results import Capabilities
from tests.engine.fake_engine import form
from tests.serve.fake_gateway import (
    YES,
    begin,
    call_request,
    faked,
    only,
    question,
    replies,
    said,
    site_of,
    wanted,
)


def told_text(result: dict[str, object]) -> str:
    """The text of a result."""
    return str(result["content"])


@faked
@pytest.mark.parametrize("kind", ["sample", "roots"])
async def test_what_only_a_caller_has_is_declined_for_one_that_has_not(kind: str) -> None:
    """Q1: an operator has neither a model nor roots, so nobody waits for one."""

    async def tool(run: Run) -> str:
        return said(await run.ask(question(kind)))

    async with site_of(tool) as gateway:
        tape = await call_request(gateway, wanted(capabilities=Capabilities(elicitation={})))
    assert "decline  by engine" in told_text(tape.result) and tape.ended[0][0] == 0


@faked
@pytest.mark.parametrize("kind", ["form", "url"])
async def test_what_a_caller_cannot_be_asked_waits_for_the_operator(kind: str) -> None:
    """Q1, Q4, A5: the request stays, and ends when somebody has answered."""

    async def tool(run: Run) -> str:
        return said(await run.ask(question(kind)))

    async with site_of(tool) as gateway:
        task = begin(gateway, wanted(token="t", capabilities=Capabilities(sampling={})))
        await asyncio.sleep(20)
        [asked] = only(gateway).call.open
        gateway.engine.answer(asked, Answer("accept", Raw(b"{}"), "operator"))
        tape = await task
    assert "accept {} by operator" in told_text(tape.result) and len(tape.notices) == 1


@faked
async def test_every_kind_of_question_goes_into_one_round() -> None:
    """Q1 f: as many as are open in the same pass, each by its own method."""
    kinds = ("form", "url", "sample", "roots")

    async def tool(run: Run) -> str:
        found = await asyncio.gather(*[run.ask(question(kind, kind)) for kind in kinds])
        return "; ".join(map(said, found))

    every = Capabilities({"form": {}, "url": {}}, {}, {})
    answers = replies(form=YES, url={"action": "accept"}, sample={"role": "assistant"}, roots={"roots": []})
    async with site_of(tool) as gateway:
        first = await call_request(gateway, wanted(capabilities=every))
        asked = first.result["inputRequests"]
        second = await call_request(gateway, wanted(capabilities=every, state=first.state, answers=answers))
    methods = {key: one["method"] for key, one in asked.items()}
    assert methods == {
        "form": "elicitation/create", "url": "elicitation/create",
        "sample": "sampling/createMessage", "roots": "roots/list",
    }  # fmt: skip
    assert '{"role": "assistant"}' in second.result["content"][0]["text"]


async def asks_on(run: Run) -> str:
    """A tool that asks ten times, and then for a model."""
    for n in range(10):
        await run.ask(form(f"k{n}"))
    return said(await run.ask(question("sample")))


@faked
async def test_after_eight_rounds_the_operator_is_asked() -> None:
    """Q1 g: official clients stop at ten; the request stays open, and a model is nobody's any more."""
    async with site_of(asks_on, limits=Limits(answer_s=50)) as gateway:
        tape = await call_request(gateway, wanted())
        for n in range(MAX_ROUNDS - 1):
            tape = await call_request(gateway, wanted(state=tape.state, answers=replies(**{f"k{n}": YES})))
        task = begin(gateway, wanted(token="t", state=tape.state, answers=replies(k7=YES)))
        for n in (8, 9):
            await asyncio.sleep(20)
            [asked] = only(gateway).call.open.values()
            assert asked.key == f"k{n}" and not task.done()
            gateway.engine.answer(asked.id, Answer(by="operator"))
        last = await task
    assert "decline  by engine" in told_text(last.result), "and it does not wait for what cannot come"
    assert [text for _, text in last.notices] == ["waiting for an answer: sure?"] * 2


async def large(run: Run) -> str:
    """A tool that reports, and returns more than one event may hold."""
    run.report(1, 1, None)
    await asyncio.sleep(1)
    return "x" * EVENT_MAX_BYTES


@faked
async def test_a_result_too_large_for_the_stream_is_fetched_by_a_retry() -> None:
    """G3: a round that asks nothing ends the stream; the retry gets the whole as its one answer."""
    async with site_of(large) as gateway:
        first = await call_request(gateway, wanted(token="t"))
        assert "inputRequests" not in first.result and len(first.numbers) == 1
        second = await call_request(gateway, wanted(id=2, token="u", state=first.state))
        again = await call_request(gateway, wanted(id=3, state=first.state))
    assert len(second.result["content"][0]["text"]) == EVENT_MAX_BYTES and not second.streaming
    assert (second.frames, second.result["_meta"]["progressToken"], again.last["id"]) == ([], "u", 3)


@faked
async def test_a_large_result_goes_at_once_where_it_can() -> None:
    """G3: as the only answer, or on a transport that has no such limit."""
    async with site_of(large) as gateway:
        whole = await call_request(gateway, wanted())
        pipe = await call_request(gateway, wanted(token="t"), era=Era2026(PendingRequests(gateway), "local"))
    assert (
        len(whole.result["content"][0]["text"]) == len(pipe.result["content"][0]["text"]) == EVENT_MAX_BYTES
    )


@faked
async def test_leaving_after_a_large_result_was_put_off_cancels_nothing() -> None:
    """Q1 a: the round was the last frame; the result waits for whoever fetches it."""
    async with site_of(large) as gateway:
        first = await call_request(gateway, wanted(token="t"))
        first.leave()
        await asyncio.sleep(100)
        second = await call_request(gateway, wanted(state=first.state))
    assert not second.result.get("isError")


@faked
async def test_a_question_that_is_answered_in_the_same_pass_ends_no_request() -> None:
    """Q1 f: what is no longer open when it is seen is not asked."""

    async def tool(run: Run) -> str:
        asking = asyncio.ensure_future(run.ask(form("sure")))
        await asyncio.sleep(0)
        [asked] = only(gateway).call.open
        gateway.engine.answer(asked, Answer(by="operator"))
        return said(await asking)

    async with site_of(tool) as gateway:
        tape = await call_request(gateway, wanted())
        assert "accept {} by operator" in told_text(tape.result)
