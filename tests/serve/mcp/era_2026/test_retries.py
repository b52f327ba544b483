"""A retry answers what its caller was asked, once, and nothing that only has the same key."""

import asyncio
from contextlib import suppress

import pytest

from afoot.core.facts import Answer
from afoot.core.ports import Run
from afoot.errors import RunnerDied
from afoot.wire.results import Capabilities
from tests.engine.fake_engine import Body, form
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
async def test_an_answer_that_comes_between_two_attempts_is_not_asked_for_again() -> None:
    """Q1 h, U4: what asked died, the next attempt has not come so far, and its caller brings the answer."""

    async def tool(run: Run) -> str:
        if run.attempt == 1:
            asking = asyncio.ensure_future(run.ask(question("form", "who")))
            await asyncio.sleep(5)
            asking.cancel()
            raise RunnerDied("its child process was killed")
        await asyncio.sleep(5)
        return said(await run.ask(question("form", "who")))

    can = Capabilities(elicitation={})
    async with site_of(tool, idempotent=True) as gateway:
        first = await call_request(gateway, wanted(capabilities=can))
        await asyncio.sleep(7)
        assert not only(gateway).call.open
        last = await call_request(
            gateway, wanted(capabilities=can, state=first.state, answers=replies(who=YES))
        )
    assert "accept" in told_text(last.result)


@faked
async def test_an_answer_to_what_a_living_tool_asks_no_more_is_not_kept_for_its_next_question() -> None:
    """A5, Q1: the person has not seen that one."""

    async def tool(run: Run) -> str:
        with suppress(TimeoutError):
            async with asyncio.timeout(5):
                await run.ask(question("form", "who"))
        await asyncio.sleep(5)
        return said(await run.ask(question("form", "who")))

    can = Capabilities(elicitation={})
    async with site_of(tool, idempotent=True) as gateway:
        first = await call_request(gateway, wanted(capabilities=can))
        await asyncio.sleep(7)
        assert not only(gateway).call.open
        late = await call_request(
            gateway, wanted(capabilities=can, state=first.state, answers=replies(who=YES))
        )
        assert only(gateway).call.open
        last = await call_request(
            gateway, wanted(capabilities=can, state=late.state, answers=replies(who=YES))
        )
    assert "accept" in told_text(last.result)


async def ask_thrice(run: Run) -> str:
    """A tool that asks the same three times, one after the other."""
    return " ".join([said(await run.ask(form("sure"))) for _ in range(3)])


def numbered(n: int) -> dict[str, object]:
    """An answer that can be told from others."""
    return {"action": "accept", "content": {"n": n}}


@faked
async def test_a_retry_that_comes_twice_answers_no_question_that_was_asked_since() -> None:
    """Q1 c, Q1 d: though it has the same key; whoever brings it is asked what is asked now."""
    async with site_of(ask_thrice) as gateway:
        asked = await call_request(gateway, wanted())
        for n in (1, 2):
            retry = wanted(state=asked.state, answers=replies(sure=numbered(n)))
            for _ in range(3):
                asked = await call_request(gateway, retry)
                assert len(only(gateway).call.questions) == n + 1 and "sure" in asked.result["inputRequests"]
        last = await call_request(gateway, wanted(state=asked.state, answers=replies(sure=numbered(3))))
    assert [told_text(last.result).count(f'{{"n": {n}}}') for n in (1, 2, 3)] == [1, 1, 1]


@faked
async def test_an_answer_that_comes_too_late_is_none_to_the_next_question() -> None:
    """A5, Q1 d: somebody else was first; the retry only follows, and brings the next one back."""
    async with site_of(ask_thrice) as gateway:
        state = (await call_request(gateway, wanted())).state
        [first] = only(gateway).call.open
        gateway.engine.answer(first, Answer("decline", by="operator"))
        await asyncio.sleep(1)
        late = await call_request(gateway, wanted(state=state, answers=replies(sure=YES)))
        assert "sure" in late.result["inputRequests"]
        assert [one.answer.by for one in only(gateway).call.answers.values()] == ["operator"]


def dying(pause_s: float) -> Body:
    """A tool that dies while it asks; run again it asks twice by the same key, each after a while."""

    async def body(run: Run) -> str:
        if run.attempt == 1:
            asking = asyncio.ensure_future(run.ask(form("sure")))
            await asyncio.sleep(5)
            asking.cancel()
            raise RunnerDied("its child process was killed")
        found: list[str] = []
        for _ in range(2):
            await asyncio.sleep(pause_s)
            found.append(said(await run.ask(form("sure"))))
        return " ".join(found)

    return body


@faked
@pytest.mark.parametrize("pause_s", [0, 5], ids=["it asks at once", "it asks later"])
async def test_a_retry_that_comes_twice_answers_once_where_an_attempt_died(pause_s: float) -> None:
    """Q1 c, U4: it is the answer to the first question of either attempt, and to nothing else."""
    async with site_of(dying(pause_s), idempotent=True) as gateway:
        asked = await call_request(gateway, wanted())
        await asyncio.sleep(7)
        retry = wanted(state=asked.state, answers=replies(sure=numbered(1)))
        for _ in range(3):
            asked = await call_request(gateway, retry)
            assert len(only(gateway).call.open) == 1 and len(only(gateway).call.questions) == 3
        last = await call_request(gateway, wanted(state=asked.state, answers=replies(sure=numbered(2))))
    assert [told_text(last.result).count(f'{{"n": {n}}}') for n in (1, 2)] == [1, 1]


@faked
async def test_a_retry_that_comes_again_before_the_next_question_leaves_that_open() -> None:
    """Q1 c, A5: what asked died, and the answer is taken; nobody has seen what is asked next."""
    async with site_of(dying(5), idempotent=True) as gateway:
        asked = await call_request(gateway, wanted())
        await asyncio.sleep(11)
        retry = wanted(state=asked.state, answers=replies(sure=numbered(1)))
        both = [begin(gateway, retry), begin(gateway, retry)]
        await asyncio.sleep(1)
        both.append(begin(gateway, retry))
        for task in both:
            assert "sure" in (await task).result["inputRequests"]
        assert len(only(gateway).call.open) == 1 and len(only(gateway).call.questions) == 3


@faked
async def test_a_retry_is_no_answer_to_what_was_over_before_it_was_asked() -> None:
    """A5, U4: a tool gave up its first question, and died while it asked the second by the same key."""

    async def tool(run: Run) -> str:
        if run.attempt == 1:
            for _ in range(2):
                with suppress(TimeoutError):
                    async with asyncio.timeout(5):
                        await run.ask(form("sure"))
            raise RunnerDied("its child process was killed")
        await asyncio.sleep(5)
        return " then ".join([said(await run.ask(form("sure"))) for _ in range(2)])

    async with site_of(tool, idempotent=True) as gateway:
        state = (await call_request(gateway, wanted())).state
        await asyncio.sleep(6)
        state = (await call_request(gateway, wanted(state=state))).state
        await asyncio.sleep(6)
        first = await call_request(gateway, wanted(state=state, answers=replies(sure=numbered(2))))
        assert len(only(gateway).call.questions) == 3
        last = await call_request(gateway, wanted(state=first.state, answers=replies(sure=numbered(1))))
    told = told_text(last.result)
    assert told.index('{"n": 1}') < told.index(" then ") < told.index('{"n": 2}')
